package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func inputCases() []Case {
	const end = "contract.Request.Stdin: it is copied to the command until its end"
	return []Case{
		{"input/none", "contract.Request.Stdin: nil is /dev/null", script(step{sh: "wc -c", out: "0\n"}, step{sh: "cat", out: ""})},
		{"input/empty", end, onAny(given("", "wc -c", "0\n"))},
		{"input/text", end, onAny(given("a\n  b c\nno newline", "cat", "a\n  b c\nno newline"))},
		{"input/not-read", "contract.Request.Stdin: a command that does not read it to the end is no error", onAny(notRead)},
		{"input/every-byte", "contract.Request.Stdin: bytes arrive as they are", onAny(everyByte)},
		{"input/large", end, onAny(largeInput)},
		{"input/of-a-pipeline", end, onAny(given("b\na\n", "sort | tr a-z A-Z", "A\nB\n"))},
	}
}

func given(in, text, out string) func(context.Context, *box) error {
	return func(ctx context.Context, b *box) error {
		r, err := b.Execute(ctx, contract.Request{Command: text, Stdin: strings.NewReader(in)})
		if err != nil {
			return wrap(text, err)
		}
		return want(fmt.Sprintf("%q, given %q,", text, in), string(r.Output), out)
	}
}

func notRead(ctx context.Context, b *box) error {
	const size = 20 << 20
	r, err := b.Execute(ctx, contract.Request{Command: "head -c1", Stdin: io.LimitReader(zeros{'z'}, size)})
	if err != nil {
		return wrap("head -c1 of 20 MB", err)
	}
	if r.ExitCode != 0 || string(r.Output) != "z" {
		return fmt.Errorf("head -c1 of 20 MB: status %d and %q, want 0 and z", r.ExitCode, clip(string(r.Output)))
	}
	return nil
}

// zeros reads as one byte for ever.
type zeros struct{ b byte }

func (z zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = z.b
	}
	return len(p), nil
}

// everyByte counts them inside, so that it says something of the way in alone.
func everyByte(ctx context.Context, b *box) error {
	const values = 256
	all := make([]byte, values)
	for i := range all {
		all[i] = byte(i)
	}
	r, err := b.Execute(ctx, contract.Request{Command: "sha256sum", Stdin: bytes.NewReader(all)})
	if err != nil {
		return err
	}
	return want("the sum of all bytes", string(r.Output), fmt.Sprintf("%x  -\n", sha256.Sum256(all)))
}

// largeInput is more than any window or pipe holds, and comes back on the other side meanwhile.
func largeInput(ctx context.Context, b *box) error {
	const size = 5 << 20
	sum := sha256.New()
	in := io.TeeReader(io.LimitReader(rand.NewChaCha8([32]byte{5}), size), sum)
	r, err := b.Execute(ctx, contract.Request{Command: "sha256sum", Stdin: in})
	if err != nil {
		return err
	}
	return want("the sum of 5 MB", string(r.Output), fmt.Sprintf("%x  -\n", sum.Sum(nil)))
}
