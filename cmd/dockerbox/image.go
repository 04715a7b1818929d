package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

func newImage(std streams, open opener) *cobra.Command {
	c := &cobra.Command{
		Use:         "image",
		Short:       "Build the sandbox image, or hold one to what sandboxes need",
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitOK + "\n" + exitUsage},
		RunE:        func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newImageBuild(std, open), newImageVerify(std, open))
	return c
}

type imageBuildOptions struct {
	base, tag     string
	noCache, json bool
}

func newImageBuild(std streams, open opener) *cobra.Command {
	var o imageBuildOptions
	c := &cobra.Command{
		Use:   "build [--base REF] [--tag REF] [--no-cache] [--json]",
		Short: "Build the sandbox image, unless it is up to date",
		Long: `Build the image that sandboxes are made of when they ask for no other. One that
was built from the same recipe on the same base is up to date and left as it is;
--no-cache builds it all the same, with the newest packages of Debian.

The image it replaces is removed when no sandbox uses it. An interrupted build
leaves nothing; after one that failed the steps that worked are kept.

Where a proxy checks what goes over TLS, PIP_CERT, REQUESTS_CA_BUNDLE, SSL_CERT_FILE
or NODE_EXTRA_CA_CERTS names a file with its certificate: the first that is set is
used for fetching, and does not get into the image.`,
		Args:        noArgs,
		Annotations: map[string]string{exitCodes: exitPlain},
		RunE:        func(c *cobra.Command, _ []string) error { return runImageBuild(c.Context(), std, open, o) },
	}
	f := c.Flags()
	f.StringVar(&o.base, "base", "", fmt.Sprintf("Debian image `REF` to build on (default %s where it is there, else %s)", image.BaseTag, image.UpstreamBase))
	f.StringVar(&o.tag, "tag", image.DefaultTag, "name the image `REF`")
	f.BoolVar(&o.noCache, "no-cache", false, "build every step anew")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return c
}

// buildAnswer is what image build prints.
type buildAnswer struct {
	Schema     int    `json:"schema"`
	Tag        string `json:"tag"`
	ID         string `json:"id"`
	Base       string `json:"base"`
	Size       int64  `json:"size"`
	Built      bool   `json:"built"`
	DurationMS int64  `json:"duration_ms"`
}

func runImageBuild(ctx context.Context, std streams, open opener, o imageBuildOptions) error {
	begin := time.Now()
	authorities, source, err := findAuthorities(os.LookupEnv, os.ReadFile)
	if err != nil {
		note(std.err, "warning: "+err.Error())
	}
	pull, bar := newPullProgress(std.err), newBuildProgress(std.err)
	p, err := open(provider.WithProgress(pull.report))
	if err != nil {
		return err
	}
	_, revision := buildVersion()
	built, err := p.BuildImage(ctx, provider.ImageBuild{
		Base: o.base, Tag: o.tag, Anew: o.noCache, Authorities: authorities, Revision: revision,
		Report: func(b provider.BuildProgress) {
			pull.done()
			if source != "" {
				note(std.err, "fetching with the certificates of "+source)
				source = ""
			}
			bar.report(b)
		},
	})
	pull.done()
	bar.done()
	if err != nil {
		return errors.Join(err, p.Close())
	}
	if built.FormerInUse != "" {
		note(std.err, "the former "+built.Tag+" stays as "+shortImageID(built.FormerInUse)+": a sandbox uses it")
	}
	return errors.Join(sayBuilt(std.out, built, time.Since(begin), o.json), p.Close())
}

func sayBuilt(out io.Writer, built provider.BuiltImage, took time.Duration, asJSON bool) error {
	if asJSON {
		return printJSON(out, buildAnswer{schema, built.Tag, built.ID, built.Base, built.Size, built.Built, took.Milliseconds()})
	}
	how := "up to date"
	if built.Built {
		how = fmt.Sprintf("built in %.0f s", took.Seconds())
	}
	return say(out, "image  %s\nid     %s\nbase   %s\nsize   %s\n%s\n", built.Tag, shortImageID(built.ID), built.Base, units.HumanSize(float64(built.Size)), how)
}

// shortImageID is as much of an image's id as people read.
func shortImageID(id string) string {
	const algorithm = "sha256:"
	if len(id) > len(algorithm) && id[:len(algorithm)] == algorithm {
		id = id[len(algorithm):]
	}
	return shortID(id)
}

// authorityVariables are those by which programs are told whom to trust, those of the programs that fetch first.
var authorityVariables = []string{"PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"}

// findAuthorities reads the file that the first variable with a value names, and says which that was. An error is about a file that cannot be
// used; a build may well do without.
func findAuthorities(lookup lookupEnv, read func(string) ([]byte, error)) (text []byte, source string, err error) {
	for _, name := range authorityVariables {
		file, _ := lookup(name)
		if file == "" {
			continue
		}
		text, err := read(file)
		if err != nil {
			return nil, "", fmt.Errorf("%s: %w", name, err)
		}
		if block, _ := pem.Decode(text); block == nil {
			return nil, "", fmt.Errorf("%s: %s has no certificate in PEM format", name, file)
		}
		return text, name, nil
	}
	return nil, "", nil
}
