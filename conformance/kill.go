package conformance

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// A limit that a command outlives, and how long its end may take on a busy machine: much less than the commands would.
const (
	limit  = time.Second
	prompt = 30 * time.Second
)

func killCases() []Case {
	const tree = "contract.Environment.Execute: the whole process tree is dead before it returns"
	return []Case{
		{"kill/timed-out", "contract.ExitTimedOut: 124, said as a flag and as a line, with the output so far", onAny(timedOut)},
		{"kill/timed-out-by-the-caller", "contract.ErrTimedOut: a context that ends for it is a time-out too", onAny(timedOutByCaller)},
		{"kill/interrupted", "contract.ExitInterrupted: 130 when the context ends for any other reason, with the output so far", onAny(interrupted)},
		{"kill/whole-tree", tree, onAny(wholeTree)},
		{"kill/own-session", tree, onAny(ownSession)},
		{"kill/earlier-jobs-live", "contract.Environment.Execute: jobs of earlier commands are not part of the tree", onAny(earlierJobs)},
		{"kill/background-does-not-delay", "Hermes 2: a background child that holds the output open does not hold the status back", onAny(backgroundChild)},
		{"kill/next-command-works", "contract.Environment.Execute: a kill ends a command, not the sandbox", onAny(nextCommand)},
	}
}

func timedOut(ctx context.Context, b *box) error {
	r, err := b.Execute(ctx, contract.Request{Command: "echo before; sleep 300", Timeout: limit})
	return b.killed(r, err, contract.ExitTimedOut, "timed out after 1s")
}

func timedOutByCaller(ctx context.Context, b *box) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, contract.ErrTimedOut)
	defer cancel()
	r, err := b.Execute(ctx, contract.Request{Command: "echo before; sleep 300"})
	return b.killed(r, err, contract.ExitTimedOut, "timed out")
}

func interrupted(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		r, err := b.interrupt(ctx, "echo before; echo >"+quote(dir+"/begun")+"; sleep 300", dir+"/begun", 1)
		return b.killed(r, err, contract.ExitInterrupted, "interrupted")
	})
}

// interrupt runs text and interrupts it once file has so many lines. If they never come the command ends by itself, as a failure.
func (b *box) interrupt(ctx context.Context, text, file string, lines int) (contract.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		wait := fmt.Sprintf("for n in {1..600}; do (($(wc -l <%s) == %d)) && exit 0; sleep 0.05; done 2>/dev/null; exit 1", quote(file), lines)
		if r, err := b.Execute(ctx, contract.Request{Command: wait, Dir: "/"}); err == nil && r.ExitCode == 0 {
			cancel(contract.ErrInterrupted)
		}
	})
	return b.Execute(ctx, contract.Request{Command: text, Timeout: prompt})
}

// killed checks the result of a command that had written "before" and was killed.
func (b *box) killed(r contract.Result, err error, code int, line string) error {
	if err != nil {
		return wrap("the killed command", err)
	}
	out := string(r.Output)
	if r.ExitCode != code || r.TimedOut != (code == contract.ExitTimedOut) || r.Interrupted != (code == contract.ExitInterrupted) {
		return fmt.Errorf("status %d, timed out %v, interrupted %v, output %q; want %d and its flag", r.ExitCode, r.TimedOut, r.Interrupted, clip(out), code)
	}
	if !strings.HasPrefix(out, "before\n") || !strings.Contains(out, line) {
		return fmt.Errorf("the output is %q, want what was written and a line with %q", clip(out), line)
	}
	if r.Duration > prompt {
		return fmt.Errorf("it took %s, want about %s", r.Duration, limit)
	}
	return nil
}

// living is shell text that prints those of the processes numbered in file that still run. One that ended and waits for its parent is dead.
func living(file string) string {
	return "while read -r p; do s=$(cat /proc/$p/stat 2>/dev/null) || continue; s=${s##*) }; [[ ${s%% *} == [ZX] ]] || echo $p; done <" + quote(file)
}

// endTree runs text, which writes the numbers of so many processes to $pids and waits, interrupts it and wants none of them alive.
func (b *box) endTree(ctx context.Context, text string, processes int) error {
	return b.within(ctx, func(dir string) error {
		file := dir + "/pids"
		r, err := b.interrupt(ctx, "pids="+quote(file)+"\n"+text, file, processes)
		if err != nil || r.ExitCode != contract.ExitInterrupted {
			return fmt.Errorf("status %d, %s; want %d", r.ExitCode, said(err), contract.ExitInterrupted)
		}
		return b.steps(ctx, step{sh: "wc -l <" + quote(file), out: fmt.Sprintln(processes)}, step{sh: living(file)})
	})
}

func wholeTree(ctx context.Context, b *box) error {
	return b.endTree(ctx, `trap '' TERM INT; echo $BASHPID >>"$pids"; (trap '' TERM; echo $BASHPID >>"$pids"; sleep 300; sleep 301) & sleep 302 & echo $! >>"$pids"; wait; sleep 303`, 3)
}

func ownSession(ctx context.Context, b *box) error {
	return b.endTree(ctx, `setsid bash -c 'echo $BASHPID >>"$1"; sleep 300; sleep 301' x "$pids" & (setsid bash -c 'trap "" TERM HUP; echo $BASHPID >>"$1"; sleep 300; sleep 301' x "$pids" &) ; sleep 302`, 2)
}

func earlierJobs(ctx context.Context, b *box) error {
	return b.within(ctx, func(dir string) error {
		file := quote(dir + "/pids")
		job, err := b.do(ctx, "nohup sleep 300 >/dev/null 2>&1 & echo $! >"+file+"; cat "+file)
		if err != nil {
			return err
		}
		r, err := b.Execute(ctx, contract.Request{Command: "sleep 301", Timeout: limit})
		if err != nil || r.ExitCode != contract.ExitTimedOut {
			return fmt.Errorf("status %d, %s; want %d", r.ExitCode, said(err), contract.ExitTimedOut)
		}
		return b.steps(ctx, step{sh: living(dir + "/pids"), out: job}, step{sh: "kill -9 " + strings.TrimSpace(job)})
	})
}

func backgroundChild(ctx context.Context, b *box) error {
	r, err := b.Execute(ctx, contract.Request{Command: "sleep 300 & echo $!"})
	if err != nil {
		return err
	}
	if r.ExitCode != 0 || r.Duration > prompt {
		return fmt.Errorf("status %d after %s, want 0 at once", r.ExitCode, r.Duration)
	}
	return b.steps(ctx, step{sh: "kill -9 " + strings.TrimSpace(string(r.Output))})
}

func nextCommand(ctx context.Context, b *box) error {
	if err := b.steps(ctx, step{sh: "cd /usr; export C_K=kept", dir: "~"}); err != nil {
		return err
	}
	r, err := b.Execute(ctx, contract.Request{Command: "sleep 300", Timeout: limit})
	if err != nil || !r.TimedOut {
		return fmt.Errorf("status %d, %s; want a time-out", r.ExitCode, said(err))
	}
	return b.steps(ctx, step{sh: "pwd; echo $C_K", out: "/usr\nkept\n"}, step{sh: "unset C_K"})
}
