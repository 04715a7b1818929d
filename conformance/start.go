package conformance

import (
	"context"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func startCases() []Case {
	const fallsBack = "Hermes 3.2: a start directory that belongs to the host falls back to the default"
	return []Case{
		{"start/nothing-asked", "Hermes 3.1: without a setting, commands start in default_cwd", onAny(startsIn("", "{default}"))},
		{"start/tilde", "Hermes 3.4: \"~\" comes literally and the environment resolves it", onAny(startsIn("~", "{home}"))},
		{"start/below-tilde", "contract.StartDirectory: \"~/x\" is below the home", onAny(startsBelowHome)},
		{"start/absolute", "Hermes 3.1: an absolute start directory is taken as it is", onAny(startsIn("/usr", "/usr"))},
		{"start/relative", fallsBack, onAny(startsIn("work/x", "{default}"))},
		{"start/macos-home", fallsBack, onAny(startsIn("/Users/me/x", "{default}"))},
		{"start/windows-drive", fallsBack, onAny(startsIn(`D:\.hermes`, "{default}"))},
		{"start/windows-slashes", fallsBack, onAny(startsIn("e:/x", "{default}"))},
		{"start/windows-share", fallsBack, onAny(startsIn(`\\server\share`, "{default}"))},
		{"start/no-better-idea", "Hermes 6: a start in exactly /root that the account cannot enter means the home", onAny(startsInRoot)},
		{"start/only-once", "Hermes 2: cd lasts; the start directory is for the first command", onAny(startsOnce)},
	}
}

// startsIn opens a handle with the start directory asked and wants its first command to run in wanted. {default} is where the provider's
// default_cwd leads.
func startsIn(asked, wanted string) func(context.Context, *box) error {
	return func(ctx context.Context, b *box) error {
		dir := b.fill(wanted)
		if dir == "{default}" {
			dir = contract.StartDirectory(b.subject.Provider.DefaultCwd(), b.Info().Home)
		}
		return b.again(ctx, asked, func(b *box) error {
			if got := b.Info().Cwd; got != dir {
				return fmt.Errorf("asked to start in %q, the environment says %q, want %q", asked, got, dir)
			}
			first := step{sh: "pwd", out: dir + "\n"}
			if asked == "" { // a host names the directory it was told
				first.dir = b.Info().Cwd
			}
			return b.steps(ctx, first)
		})
	}
}

func startsBelowHome(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		home := b.Info().Home
		return startsIn("~"+dir[min(len(home), len(dir)):], dir)(ctx, b)
	})
}

// startsInRoot: the account decides, for /root is an ordinary home for those who may enter it.
func startsInRoot(ctx context.Context, b *box) error {
	enters, err := b.do(ctx, "cd /root 2>/dev/null && pwd || echo no")
	if err != nil {
		return err
	}
	dir := "/root"
	if enters != dir+"\n" {
		dir = b.Info().Home
	}
	return startsIn("/root", dir)(ctx, b)
}

func startsOnce(ctx context.Context, b *box) error {
	return b.again(ctx, "/usr", func(b *box) error {
		return b.steps(ctx, step{sh: "pwd; cd /", out: "/usr\n"}, step{sh: "pwd", out: "/\n"})
	})
}
