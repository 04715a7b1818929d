package conformance

import (
	"context"
	"fmt"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func homeCases() []Case {
	const info = "contract.Info.Home: the home as the sandbox itself answers, absolute"
	return []Case{
		{"home/absolute", info, onAny(homeIsAbsolute)},
		{"home/exists-and-writable", info, script(step{sh: `[[ -d ~ && -w ~ && -x ~ ]] && f=$(mktemp ~/c.XXXXXX) && rm "$f" && echo yes`, dir: "~", out: "yes\n"})},
		{"home/variable", "Hermes 2: HOME inside is the home the host is told", script(step{sh: `echo "$HOME"`, out: "{home}\n"})},
		{"home/tilde-in-the-shell", "Hermes 3.4: ~ means the same to the shell as to the host", script(step{sh: "echo ~; cd ~; pwd", out: "{home}\n{home}\n"})},
		{"home/same-for-two-handles", "contract.Info.Home: it belongs to the sandbox, not to a handle on it", onAny(homeIsShared)},
		{"home/recorded-cd-survives-the-guard", "Hermes 3.5: a recorded cd at or below the declared home is not taken for a host path", onAny(homeSurvivesGuard)},
		{"home/temporary-directory", "Hermes 2: get_temp_dir is an absolute directory that can be written", onAny(temporaryDirectory)},
		{"home/account", "contract.Info.User: the account commands run as", onAny(accountIsNamed)},
	}
}

func homeIsAbsolute(_ context.Context, b *box) error {
	if home := b.Info().Home; !strings.HasPrefix(home, "/") || home != "/" && strings.HasSuffix(home, "/") {
		return fmt.Errorf("the home is %q, want an absolute path", home)
	}
	return nil
}

func homeIsShared(ctx context.Context, b *box) error {
	first := b.Info().Home
	if first == "" {
		return fmt.Errorf("the first handle has no home")
	}
	return b.again(ctx, "", func(b *box) error { return want("the second handle's home", b.Info().Home, first) })
}

func homeSurvivesGuard(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		r, err := b.Execute(ctx, contract.Request{Command: "cd " + quote(dir)})
		if err != nil {
			return err
		}
		declared := contract.DeclaredDefault(b.subject.Provider.DefaultCwd(), nil)
		guard := contract.Guard{Container: true, Home: contract.DeclaredHome(declared, b.Info().Home)}
		used := contract.HostCommandDirectory("", r.Cwd, b.Info().Cwd, guard)
		if used != dir {
			return fmt.Errorf("after cd %s a host that declares the home %q runs the next command in %q", dir, guard.Home, used)
		}
		return b.steps(ctx, step{sh: "pwd", dir: used, out: dir + "\n"})
	})
}

func temporaryDirectory(ctx context.Context, b *box) error {
	dir := b.Info().TempDir
	if !strings.HasPrefix(dir, "/") {
		return fmt.Errorf("the temporary directory is %q, want an absolute path", dir)
	}
	return b.steps(ctx, step{sh: "f=$(mktemp -p " + quote(dir) + ") && echo x >\"$f\" && cat \"$f\" && rm \"$f\"", out: "x\n"})
}

func accountIsNamed(ctx context.Context, b *box) error {
	user, _, _ := strings.Cut(b.Info().User, ":")
	if user == "" {
		return fmt.Errorf("the account is %q, want a name or a number", b.Info().User)
	}
	out, err := b.do(ctx, "id -u; id -un 2>/dev/null")
	if err != nil && out == "" { // a number need not have a name
		out, err = b.do(ctx, "id -u")
	}
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(out) {
		if name == user {
			return nil
		}
	}
	return fmt.Errorf("commands run as %q, want %s", strings.Fields(out), user)
}
