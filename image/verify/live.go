package verify

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// sandbox is what the live checks look at, as the account that the desktop runs as.
type sandbox struct {
	env     contract.Environment
	account string            // empty: the sandbox's own
	environ []string          // of the image
	display map[string]string // leads a program to the screen; nil without one
}

// Bounds of one program that a check runs: its time, and what is kept of its words, in bytes.
const (
	runLimit = 30 * time.Second
	maxSaid  = 256 << 10
)

// run runs a program and returns what it said. It needs no shell. An error is about the sandbox.
func (s *sandbox) run(ctx context.Context, req contract.Request) (said string, status int, err error) {
	req.User, req.Timeout, req.MaxOutput = s.account, runLimit, maxSaid
	r, err := s.env.Execute(ctx, req)
	return words(r.Output), r.ExitCode, err
}

// words are what a program said, without the mark at the beginning of what the agent says in its place.
func words(output []byte) string {
	return strings.TrimPrefix(strings.TrimSpace(string(output)), "dockerbox: ")
}

// ended describes a program that did not do what it was to do.
func ended(said string, status int) string {
	how := fmt.Sprintf("it ended with status %d", status)
	if status == contract.ExitTimedOut {
		how = fmt.Sprintf("it was not done after %s", runLimit)
	}
	if said == "" {
		return how
	}
	return how + ": " + said
}

// liveCheck looks at something that works, or does not, in a sandbox. Its error is about the sandbox.
type liveCheck struct {
	name string
	look func(*sandbox, context.Context, *Report) error
}

// liveChecks are done in this order, each whatever the others found.
var liveChecks = []liveCheck{
	{"account", (*sandbox).accountIsRight},
	{"home", (*sandbox).homeIsWritable},
	{"runtime directory", (*sandbox).runtimeDirectory},
	{"sudo", (*sandbox).sudo},
	{"Pillow", (*sandbox).pillow},
	{"fonts", (*sandbox).fonts},
	{"browser", (*sandbox).browser},
	{"screen", (*sandbox).screen},
	{"cua-driver", (*sandbox).driver},
}

// live looks at a sandbox of the image.
func (r *Report) live(ctx context.Context, on Images, i provider.Image, env contract.Environment) error {
	s := &sandbox{env: env, environ: i.Config.Env}
	if _, status, err := s.run(ctx, contract.Request{Argv: []string{"id", "-u", Account}}); err != nil {
		return err
	} else if status == 0 {
		s.account = Account
	}
	missing, known, err := s.unreachable(ctx)
	if err == nil && !known {
		var places []string
		if places, err = on.Lacks(ctx, i.ID, candidates(s.environ)); err == nil {
			missing = absent(s.environ, places)
		}
	}
	if err != nil {
		return err
	}
	r.programs(missing)
	for _, c := range liveChecks {
		if err := c.look(s, ctx, r); err != nil {
			return fmt.Errorf("looking at the %s: %w", c.name, err)
		}
	}
	return nil
}

// must runs a program that has to succeed, and reports whether it did.
func (s *sandbox) must(ctx context.Context, r *Report, check, want string, argv ...string) (ok bool, err error) {
	said, status, err := s.run(ctx, contract.Request{Argv: argv})
	if err == nil {
		r.expect(status == 0, check, ended(said, status), want)
	}
	return status == 0, err
}

func (s *sandbox) accountIsRight(ctx context.Context, r *Report) error {
	said, status, err := s.run(ctx, contract.Request{Argv: []string{"id", "-u", Account}})
	if err == nil {
		r.expect(status == 0 && said == AccountID, "account", said, "an account "+Account+" with number "+AccountID)
	}
	return err
}

func (s *sandbox) homeIsWritable(ctx context.Context, r *Report) error {
	const file = ".dockerbox-verify" // in the home, where programs start
	ok, err := s.must(ctx, r, "home", "the account can write to its home", "touch", "--", file)
	if err == nil && ok {
		_, _, err = s.run(ctx, contract.Request{Argv: []string{"rm", "-f", "--", file}})
	}
	return err
}

func (s *sandbox) runtimeDirectory(ctx context.Context, r *Report) error {
	dir, set := lookup(s.environ, "XDG_RUNTIME_DIR")
	if !set || !path.IsAbs(dir) {
		return nil // which has its fault
	}
	said, status, err := s.run(ctx, contract.Request{Argv: []string{"stat", "-c", "%u %a %F", "--", dir}})
	if err == nil {
		want := AccountID + " 700 directory"
		r.expect(status == 0 && said == want, "runtime directory", said, dir+" is the account's own, mode 0700")
	}
	return err
}

func (s *sandbox) sudo(ctx context.Context, r *Report) error {
	_, err := s.must(ctx, r, "sudo", "sudo -n true works for the account, without a password", "sudo", "-n", "true")
	return err
}

// pillowScript makes the kind of picture that Hermes takes of a screen.
const pillowScript = `import io
from PIL import Image, ImageGrab
Image.new("RGB", (8, 8)).save(io.BytesIO(), "JPEG")`

func (s *sandbox) pillow(ctx context.Context, r *Report) error {
	_, err := s.must(ctx, r, "Pillow", "python3 has PIL with JPEG, for thumbnails", "python3", "-c", pillowScript)
	return err
}

func (s *sandbox) fonts(ctx context.Context, r *Report) error {
	// Without a home that can be written fontconfig complains of that in every call.
	ask := func(argv ...string) (said string, ok bool, err error) {
		var complaints bytes.Buffer
		said, status, err := s.run(ctx, contract.Request{Argv: argv, Stderr: &complaints})
		if said == "" {
			said = words(complaints.Bytes())
		}
		return said, status == 0, err
	}
	emoji, ok, err := ask("fc-match", "-f", "%{family} color=%{color}", "emoji")
	if err != nil {
		return err
	}
	r.expect(ok && strings.Contains(emoji, "Emoji") && strings.Contains(emoji, "color=True"), "emoji font", emoji, "a font in colour such as Noto Color Emoji is what fc-match emoji finds")
	for _, language := range []struct{ tag, code, name string }{{"zh", "4e2d", "Chinese"}, {"ja", "3092", "Japanese"}, {"ko", "d55c", "Korean"}} {
		matched, ok, err := ask("fc-match", "-f", "%{file}", ":lang="+language.tag)
		if err != nil {
			return err
		}
		all, _, err := ask("fc-list", "-f", "%{file}\n", ":charset="+language.code)
		if err != nil {
			return err
		}
		has := ok && matched != "" && strings.Contains("\n"+all+"\n", "\n"+matched+"\n")
		r.expect(has, language.name+" font", matched, fmt.Sprintf("what fc-match :lang=%s finds has the letters, such as U+%s", language.tag, strings.ToUpper(language.code)))
	}
	return nil
}
