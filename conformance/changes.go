package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// changeCases are about other settings than a living sandbox has. The setting is a variable: every backend has those.
func changeCases() []Case {
	const adapt = "contract.Config.Adapt: "
	return []Case{
		{"changes/not-given", "contract.Config.Given: a living sandbox keeps its own settings for all others", onNewWith(setting("own"), notGiven)},
		{"changes/refused", adapt + "without it a sandbox that differs is refused, with the differences", onNewWith(setting("own"), refused)},
		{"changes/recreate", "contract.Config.Recreate: it replaces a living sandbox, keeping its home", onNewWith(setting("own"), recreated)},
		{"changes/adapt", adapt + "one that no job lives in is made anew", onNewWith(setting("own"), adapted)},
		{"changes/adapt-beside-a-job", adapt + "one that a job lives in is taken as it is, with a warning", onNewWith(setting("own"), besideJob)},
	}
}

// setting makes a configuration one with a variable of that value.
func setting(value string) func(*contract.Config) {
	return func(c *contract.Config) { c.Env = map[string]string{"C_SET": value} }
}

// wanting is the box with another configuration wanted of it.
func (b *box) wanting(change func(*contract.Config)) *box {
	other := *b
	setting("other")(&other.config)
	change(&other.config)
	return &other
}

// shows wants a handle on container id, or on another one if id is "", whose variable has a value.
func (b *box) shows(ctx context.Context, id, value string) error {
	if i := b.Info(); i.Created != (id == "") || id != "" && i.ContainerID != id {
		return fmt.Errorf("created %v, container %s; want %s", i.Created, i.ContainerID, orNew(id))
	}
	return b.steps(ctx, step{sh: "echo $C_SET; cat ~/c_home", out: value + "\nhome\n"})
}

func orNew(id string) string {
	if id == "" {
		return "a new one"
	}
	return id + " as it is"
}

func (b *box) furnish(ctx context.Context) (id string, err error) {
	return b.Info().ContainerID, b.steps(ctx, step{sh: "echo home >~/c_home"})
}

func notGiven(ctx context.Context, b *box) error {
	id, err := b.furnish(ctx)
	if err != nil {
		return err
	}
	return b.wanting(func(c *contract.Config) { c.Given = []string{} }).again(ctx, "", func(b *box) error {
		return errors.Join(b.shows(ctx, id, "own"), want("warnings about what was not asked", len(b.Info().Warnings), 0))
	})
}

func refused(ctx context.Context, b *box) error {
	id, err := b.furnish(ctx)
	if err != nil {
		return err
	}
	differs := b.wanting(func(*contract.Config) {})
	env, err := b.subject.Provider.CreateEnvironment(ctx, differs.config, "")
	if env != nil {
		err = errors.Join(err, env.Cleanup(ctx, false))
	}
	if err := backendError("a sandbox with another setting", err); err != nil {
		return err
	}
	return b.again(ctx, "", func(b *box) error { return b.shows(ctx, id, "own") })
}

func recreated(ctx context.Context, b *box) error {
	if _, err := b.furnish(ctx); err != nil {
		return err
	}
	// What is given says nothing of the variable.
	if err := b.wanting(func(c *contract.Config) { c.Recreate, c.Given = true, []string{} }).again(ctx, "", func(b *box) error {
		return b.shows(ctx, "", "own")
	}); err != nil {
		return fmt.Errorf("with nothing given: %w", err)
	}
	return b.wanting(func(c *contract.Config) { c.Recreate, c.Given = true, []string{"env"} }).again(ctx, "", func(b *box) error {
		return b.shows(ctx, "", "other")
	})
}

func adapted(ctx context.Context, b *box) error {
	if _, err := b.furnish(ctx); err != nil {
		return err
	}
	if err := b.wanting(func(c *contract.Config) { c.Adapt = true }).again(ctx, "", func(b *box) error {
		if len(b.Info().Warnings) == 0 {
			return errors.New("it was made anew without a warning")
		}
		return b.shows(ctx, "", "other")
	}); err != nil {
		return err
	}
	r, err := b.Execute(ctx, contract.Request{Command: "true"})
	if err != nil {
		return wrap("a command of who had the old one", err)
	}
	return want("recreated, as told to who had the old one,", r.Recreated, true)
}

func besideJob(ctx context.Context, b *box) error {
	id, err := b.furnish(ctx)
	if err != nil {
		return err
	}
	if err := b.steps(ctx, step{sh: "nohup sleep 4242 >/dev/null 2>&1 & echo $! >~/c_job"}); err != nil {
		return err
	}
	if err := b.wanting(func(c *contract.Config) { c.Adapt = true }).again(ctx, "", func(b *box) error {
		if len(b.Info().Warnings) == 0 {
			return errors.New("it was taken as it is without a warning")
		}
		return b.shows(ctx, id, "own")
	}); err != nil {
		return err
	}
	return b.steps(ctx, step{sh: `kill "$(<~/c_job)"`})
}
