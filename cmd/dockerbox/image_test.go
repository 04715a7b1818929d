package main

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

func TestAuthoritiesAreFoundWhereProgramsLook(t *testing.T) {
	const certificate = "-----BEGIN CERTIFICATE-----\nb25l\n-----END CERTIFICATE-----\n"
	files := map[string]string{"/one": certificate, "/two": certificate + certificate, "/text": "hello"}
	read := func(name string) ([]byte, error) {
		text, ok := files[name]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		return []byte(text), nil
	}
	for name, test := range map[string]struct {
		env          map[string]string
		source, text string
		problem      string // part of the error; empty: none
	}{
		"none":               {},
		"empty":              {env: map[string]string{"PIP_CERT": ""}},
		"Node's alone":       {env: map[string]string{"NODE_EXTRA_CA_CERTS": "/one"}, source: "NODE_EXTRA_CA_CERTS", text: files["/one"]},
		"pip's before all":   {env: map[string]string{"SSL_CERT_FILE": "/one", "PIP_CERT": "/two"}, source: "PIP_CERT", text: files["/two"]},
		"OpenSSL's":          {env: map[string]string{"SSL_CERT_FILE": "/one", "NODE_EXTRA_CA_CERTS": "/two"}, source: "SSL_CERT_FILE", text: files["/one"]},
		"a file that is not": {env: map[string]string{"REQUESTS_CA_BUNDLE": "/none", "SSL_CERT_FILE": "/one"}, problem: "REQUESTS_CA_BUNDLE: open /none"},
		"a file of no use":   {env: map[string]string{"SSL_CERT_FILE": "/text"}, problem: "SSL_CERT_FILE: /text has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			text, source, err := findAuthorities(func(name string) (string, bool) { v, ok := test.env[name]; return v, ok }, read)
			if source != test.source || string(text) != test.text {
				t.Errorf("%q from %q, want %q from %q", text, source, test.text, test.source)
			}
			if (err != nil) != (test.problem != "") || err != nil && !strings.Contains(err.Error(), test.problem) {
				t.Errorf("error %v, want %q", err, test.problem)
			}
		})
	}
}

func TestWhatWasBuiltIsSaid(t *testing.T) {
	built := provider.BuiltImage{Tag: "t:1", ID: "sha256:" + strings.Repeat("0123456789abcdef", 4), Base: "b:2", Size: 1_074_000_000, Built: true}
	for _, test := range []struct {
		built bool
		json  bool
		want  string
	}{
		{true, false, "image  t:1\nid     0123456789ab\nbase   b:2\nsize   1.074GB\nbuilt in 84 s\n"},
		{false, false, "image  t:1\nid     0123456789ab\nbase   b:2\nsize   1.074GB\nup to date\n"},
		{false, true, `{"schema":1,"tag":"t:1","id":"` + built.ID + `","base":"b:2","size":1074000000,"built":false,"duration_ms":84123}` + "\n"},
	} {
		built.Built = test.built
		var out bytes.Buffer
		if err := sayBuilt(&out, built, 84123*time.Millisecond, test.json); err != nil || out.String() != test.want {
			t.Errorf("%v: %q, want %q", err, out.String(), test.want)
		}
	}
	if err := sayBuilt(brokenWriter{}, built, 0, false); err == nil {
		t.Error("an answer that cannot be written is no success")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }
