package provider

import (
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func TestImageReferences(t *testing.T) {
	for _, ref := range []string{
		"", "debian", "debian:12", "127.0.0.1:5000/a/b:c", "Registry.example.com/team/image", "f5523d7d8bc3",
		"debian@sha256:" + strings.Repeat("a", 64), "sha256:" + strings.Repeat("a", 64), strings.Repeat("a", 64),
	} {
		if problem := imageProblem(ref); problem != "" {
			t.Errorf("%q: %s", ref, problem)
		}
	}
	for ref, want := range map[string]string{
		"UPPER": "in lower case", "a b": "must be an image reference", "x@sha256:12": "must be an image reference",
		"ubuntu:bad!tag": "must be an image reference", "-": "must be an image reference", "a:b:c": "must be an image reference",
	} {
		if problem := imageProblem(ref); !strings.Contains(problem, want) {
			t.Errorf("%q: %q, want %q in it", ref, problem, want)
		}
	}
	cfg := contract.Defaults()
	cfg.Image, cfg.Name = "UPPER", "a/b"
	if got := Check(cfg); len(got) != 2 || got[0].Key != "name" || got[1].Key != "image" {
		t.Errorf("%v, want the faults of the name and the image", got)
	}
}
