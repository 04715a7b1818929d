package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func outputCases() []Case {
	return []Case{
		{"output/order", "contract.Request.Stderr: nil means that stdout and stderr share one pipe, so their order is exact", script(
			step{sh: "for i in {1..50}; do echo o$i; echo e$i >&2; done", out: interleaved(50)})},
		{"output/order-of-children", "contract.Request.Stderr: the order holds across processes", script(
			step{sh: "for i in {1..20}; do bash -c \"echo o$i\"; bash -c \"echo e$i >&2\"; done", out: interleaved(20)})},
		{"output/text", "Hermes 2: output is what was written, nothing added and nothing taken", script(step{sh: `printf '  a\n\n\tä€😀\r\nend'`, out: "  a\n\n\tä€😀\r\nend"})},
		{"output/bytes", "contract.Result.Output: bytes, not necessarily UTF-8", script(step{sh: `printf '\xff\x80z\0\x01'`, out: "\xff\x80z\x00\x01"})},
		{"output/whole", "contract.Request.MaxOutput: zero keeps everything", onAny(wholeOutput)},
		{"output/bounded", "contract.Request.MaxOutput: a head and a tail with a notice between, and the missing bytes counted", onAny(boundedOutput)},
		{"output/below-the-bound", "contract.Request.MaxOutput: output that fits is whole", onAny(belowBound)},
		{"output/while-it-runs", "contract.Request.Stdout: it receives output while the command runs", onAny(whileItRuns)},
		{"output/slow-reader", "contract.Request.Stdout: a slow writer slows the command and loses nothing", onAny(slowReader)},
		{"output/reader-that-fails", "contract.Request.Stdout: output that cannot be passed on is a failure around the command", onAny(failingReader)},
		{"output/apart", "contract.Request.Stderr: set, it receives what the command wrote there", onAny(apart)},
	}
}

func interleaved(lines int) string {
	var b strings.Builder
	for i := range lines {
		fmt.Fprintf(&b, "o%d\ne%d\n", i+1, i+1)
	}
	return b.String()
}

func wholeOutput(ctx context.Context, b *box) error {
	const size = 5 << 20
	r, err := b.Execute(ctx, contract.Request{Command: fmt.Sprintf("head -c %d /dev/zero | tr '\\0' y", size)})
	if err != nil {
		return err
	}
	if n := len(r.Output); n != size || r.Dropped != 0 {
		return fmt.Errorf("%d bytes arrived and %d were dropped, want %d and 0", n, r.Dropped, size)
	}
	return want("the output's sum", sha256.Sum256(r.Output), sha256.Sum256(bytes.Repeat([]byte("y"), size)))
}

func boundedOutput(ctx context.Context, b *box) error {
	const bound, notice, lines = 2000, 300, 100_000
	r, err := b.Execute(ctx, contract.Request{Command: fmt.Sprintf("seq 1 %d", lines), MaxOutput: bound})
	if err != nil {
		return err
	}
	out := string(r.Output)
	if !strings.HasPrefix(out, "1\n2\n3\n") || !strings.HasSuffix(out, fmt.Sprintf("%d\n%d\n", lines-1, lines)) {
		return fmt.Errorf("it begins with %q and ends with %q, want the output's head and tail", clip(out), clip(out[max(0, len(out)-20):]))
	}
	if n := len(out); n > bound+notice || n < bound/2 {
		return fmt.Errorf("%d bytes were kept, want about %d", n, bound)
	}
	if r.Dropped <= 0 {
		return fmt.Errorf("%d bytes are said to be missing, want more than none", r.Dropped)
	}
	return nil
}

func belowBound(ctx context.Context, b *box) error {
	r, err := b.Execute(ctx, contract.Request{Command: "seq 1 100", MaxOutput: 100_000})
	if err != nil {
		return err
	}
	const size = 9 + 90*2 + 3 + 100 // digits and newlines
	if n := len(r.Output); n != size || r.Dropped != 0 {
		return fmt.Errorf("%d bytes arrived and %d were dropped, want %d and 0", n, r.Dropped, size)
	}
	return nil
}

// whileItRuns gives the command its input only after its first output came, which would otherwise never end.
func whileItRuns(ctx context.Context, b *box) error {
	in, ask := io.Pipe()
	defer func() { _ = in.Close() }() // ends the writer if the command did not take what it asked for
	answers := &onText{text: "ready\n", then: func() {
		go func() { _, err := io.WriteString(ask, "go\n"); ask.CloseWithError(err) }()
	}}
	r, err := b.Execute(ctx, contract.Request{Command: `echo ready; read -r x; echo "got $x"`, Stdin: in, Stdout: answers, Timeout: prompt})
	if err != nil {
		return err
	}
	if got := answers.String(); r.ExitCode != 0 || got != "ready\ngot go\n" || len(r.Output) != 0 {
		return fmt.Errorf("status %d, streamed %q and kept %q; want the whole dialogue streamed", r.ExitCode, got, r.Output)
	}
	return nil
}

// onText keeps what is written and calls then once text has come.
type onText struct {
	bytes.Buffer
	text string
	then func()
	once sync.Once
}

func (o *onText) Write(p []byte) (int, error) {
	n, err := o.Buffer.Write(p)
	if strings.Contains(o.String(), o.text) {
		o.once.Do(o.then)
	}
	return n, err
}

func slowReader(ctx context.Context, b *box) error {
	const size = 3 << 20
	sum := sha256.New()
	r, err := b.Execute(ctx, contract.Request{Command: fmt.Sprintf("head -c %d /dev/zero; echo end", size), Stdout: &trickle{w: sum}})
	if err != nil || r.ExitCode != 0 {
		return fmt.Errorf("status %d, %s", r.ExitCode, said(err))
	}
	return want("the sum of what the reader got", fmt.Sprintf("%x", sum.Sum(nil)), fmt.Sprintf("%x", sha256.Sum256(append(make([]byte, size), "end\n"...))))
}

// trickle writes byte by byte.
type trickle struct{ w io.Writer }

func (t *trickle) Write(p []byte) (int, error) {
	for i := range p {
		if _, err := t.w.Write(p[i : i+1]); err != nil {
			return i, err
		}
	}
	return len(p), nil
}

func failingReader(ctx context.Context, b *box) error {
	_, err := b.Execute(ctx, contract.Request{Command: "while echo more; do :; done", Stdout: broken{}, Timeout: prompt})
	if err := backendError("a command whose reader fails", err); err != nil {
		return err
	}
	return b.steps(ctx, step{sh: "echo on", out: "on\n"})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the reader is gone") }

func apart(ctx context.Context, b *box) error {
	var stdout, stderr bytes.Buffer
	r, err := b.Execute(ctx, contract.Request{Command: "echo out; echo err >&2", Stdout: &stdout, Stderr: &stderr})
	if err != nil {
		return err
	}
	if stdout.String() != "out\n" || stderr.String() != "err\n" || len(r.Output) != 0 {
		return fmt.Errorf("stdout %q, stderr %q, kept %q", stdout.String(), stderr.String(), r.Output)
	}
	return nil
}
