package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func dialCases() []Case {
	const (
		offers = "contract.Dialer.Dial: "
		halves = "contract.Conn: "
	)
	return []Case{
		{"dial/refused", offers + "it is ErrRefused when nothing listens", onAny(dialRefused)},
		{"dial/ports-of-the-sandbox-alone", offers + "network is tcp and address 127.0.0.1:PORT", onAny(dialElsewhere)},
		{"dial/end-of-writing", halves + "CloseWrite says that nothing more will be written, and reading goes on", onAny(dialAnswers)},
		{"dial/end-of-reading", halves + "the other side may end first, and writing goes on", onAny(dialGoesOn)},
		{"dial/close-delivers", halves + "Close sends what was written and then the end", onAny(dialClose)},
		{"dial/reset-shows", halves + "Reset lets the other side see that not everything was said", onAny(dialReset)},
		{"dial/broken-off", halves + "a Read gives ErrReset when the other side broke off", onAny(dialBroken)},
		{"dial/side-by-side", offers + "it is safe for concurrent use", onAny(dialMany)},
	}
}

// dialer is the box's own, where it offers one.
func (b *box) dialer() (contract.Dialer, error) {
	d, ok := b.Environment.(contract.Dialer)
	if !ok {
		return nil, fmt.Errorf("%T is no contract.Dialer", b.Environment)
	}
	return d, nil
}

// listening has a Perl script in the sandbox talk to one connection after another, each $c, while try runs. With ends the script ends itself,
// and what it said until then is the result; else it is ended after try.
func (b *box) listening(ctx context.Context, ends bool, script string, try func(d contract.Dialer, address string) error) (said string, err error) {
	d, err := b.dialer()
	if err != nil {
		return "", err
	}
	const server = `use strict; use Socket; $| = 1;
socket(my $l, PF_INET, SOCK_STREAM, 0) or die $!;
bind($l, sockaddr_in(0, INADDR_LOOPBACK)) && listen($l, 128) or die $!;
my ($port) = sockaddr_in(getsockname $l); print "$port\n";
while (accept(my $c, $l)) { binmode $c; `
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	out := &portLine{found: make(chan string, 1)}
	ended := make(chan error, 1)
	go func() {
		r, err := b.Execute(ctx, contract.Request{Argv: []string{"perl", "-e", server + script + " }"}, Stdout: out, Stderr: out})
		if err == nil && r.ExitCode != 0 && !r.Interrupted {
			err = fmt.Errorf("the listener, a Perl script, ends with %d: %q", r.ExitCode, clip(out.text()))
		}
		ended <- err
	}()
	select {
	case port := <-out.found:
		if err = try(d, "127.0.0.1:"+port); err != nil {
			stop()
			return out.text(), errors.Join(err, <-ended)
		}
	case err := <-ended:
		return "", errors.Join(errors.New("nothing listens"), err)
	}
	if !ends {
		stop()
	}
	err = <-ended
	return out.text(), err
}

// portLine finds a first line and keeps what follows.
type portLine struct {
	mu    sync.Mutex
	all   bytes.Buffer
	found chan string
	done  bool
}

func (p *portLine) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, err := p.all.Write(data)
	if line, ended := strings.CutSuffix(p.all.String(), "\n"); ended && !p.done {
		p.done = true
		p.all.Reset()
		p.found <- line
	}
	return n, err
}

func (p *portLine) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all.String()
}

func dialRefused(ctx context.Context, b *box) error {
	d, err := b.dialer()
	if err != nil {
		return err
	}
	const free = "127.0.0.1:9" // discard, which nobody offers any more
	c, err := d.Dial(ctx, "tcp", free)
	if c != nil || !errors.Is(err, contract.ErrRefused) {
		return fmt.Errorf("a port that nothing listens on: %v and %s, want ErrRefused", c, said(err))
	}
	return backendError("a port that nothing listens on", err)
}

func dialElsewhere(ctx context.Context, b *box) error {
	d, err := b.dialer()
	if err != nil {
		return err
	}
	for _, to := range [][2]string{{"udp", "127.0.0.1:53"}, {"tcp", "192.0.2.1:80"}, {"tcp", "localhost:80"}, {"tcp", "127.0.0.1:0"}, {"unix", "/run/x"}, {"tcp", ""}} {
		if c, err := d.Dial(ctx, to[0], to[1]); c != nil || errors.Is(err, contract.ErrRefused) || backendError(to[1], err) != nil {
			return fmt.Errorf("%s %q: %v and %s, want a BackendError", to[0], to[1], c, said(err))
		}
	}
	return nil
}

// noisy is data that no pattern gives.
func noisy(seed byte, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed}).Read(data) // it never fails
	return data
}

const (
	dialSize = 3 << 20 // more than any window
	// echoAll gives back what came, when it is all there.
	echoAll = `local $/; my $all = <$c>; syswrite($c, $all, 65536, $_ * 65536) for 0 .. length($all) / 65536; shutdown($c, 1); exit;`
)

func dialAnswers(ctx context.Context, b *box) error {
	_, err := b.listening(ctx, true, echoAll, func(d contract.Dialer, address string) error {
		return echoes(ctx, d, address, noisy(1, dialSize))
	})
	return err
}

// echoes sends data, ends, and wants data back.
func echoes(ctx context.Context, d contract.Dialer, address string, data []byte) (err error) {
	c, err := d.Dial(ctx, "tcp", address)
	if err != nil {
		return wrap("dial "+address, err)
	}
	defer func() { err = errors.Join(err, wrap("close", c.Close())) }()
	if n, err := c.Write(data); n != len(data) || err != nil {
		return fmt.Errorf("write: %d of %d bytes, %w", n, len(data), err)
	}
	if err := c.CloseWrite(); err != nil {
		return wrap("end writing", err)
	}
	back := sha256.New()
	n, err := io.Copy(back, c)
	if sum := sha256.Sum256(data); err != nil || !bytes.Equal(back.Sum(nil), sum[:]) {
		return fmt.Errorf("%d bytes went there, and %d others came back (%s)", len(data), n, said(err))
	}
	return nil
}

func dialGoesOn(ctx context.Context, b *box) error {
	heard, err := b.listening(ctx, true, `syswrite $c, "bye"; shutdown($c, 1); local $/; print length(<$c>); exit;`, func(d contract.Dialer, address string) error {
		c, err := d.Dial(ctx, "tcp", address)
		if err != nil {
			return wrap("dial", err)
		}
		got, err := io.ReadAll(c)
		if err == nil {
			err = want("what comes before the end", string(got), "bye")
		}
		_, late := c.Write(noisy(2, dialSize))
		return errors.Join(err, wrap("write after the end of reading", late), wrap("close", c.Close()))
	})
	if err != nil {
		return err
	}
	return want("the number of bytes that come after its end", heard, fmt.Sprint(dialSize))
}

func dialClose(ctx context.Context, b *box) error {
	const size = 200_000 // there is no waiting for who reads slowly
	heard, err := b.listening(ctx, true, `local $/; print length(<$c>); exit;`, func(d contract.Dialer, address string) error {
		c, err := d.Dial(ctx, "tcp", address)
		if err != nil {
			return wrap("dial", err)
		}
		_, err = c.Write(noisy(3, size))
		return errors.Join(wrap("write", err), wrap("close", c.Close()))
	})
	if err != nil {
		return err
	}
	return want("the number of bytes that come before a close", heard, fmt.Sprint(size))
}

func dialReset(ctx context.Context, b *box) error {
	heard, err := b.listening(ctx, true, `syswrite $c, "go"; while (1) { my $n = sysread($c, my $x, 65536); if (!defined $n) { print "broken off"; exit } if (!$n) { print "ended"; exit } }`,
		func(d contract.Dialer, address string) error {
			c, err := d.Dial(ctx, "tcp", address)
			if err != nil {
				return wrap("dial", err)
			}
			_, err = io.ReadFull(c, make([]byte, len("go")))
			return errors.Join(wrap("read", err), wrap("reset", c.Reset()))
		})
	if err != nil {
		return err
	}
	return want("what a reset looks like to the other side", heard, "broken off")
}

func dialBroken(ctx context.Context, b *box) error {
	_, err := b.listening(ctx, true, `syswrite $c, "half"; sysread($c, my $x, 1); setsockopt($c, SOL_SOCKET, SO_LINGER, pack("ii", 1, 0)); close $c; exit;`, func(d contract.Dialer, address string) error {
		c, err := d.Dial(ctx, "tcp", address)
		if err != nil {
			return wrap("dial", err)
		}
		half := make([]byte, len("half"))
		if _, err := io.ReadFull(c, half); err != nil {
			return wrap("read", err)
		}
		if _, err := c.Write([]byte("x")); err != nil {
			return wrap("write", err)
		}
		if n, err := c.Read(half); n > 0 || !errors.Is(err, contract.ErrReset) {
			return fmt.Errorf("after it was broken off: %d bytes and %s, want ErrReset", n, said(err))
		}
		return wrap("close", c.Close())
	})
	return err
}

func dialMany(ctx context.Context, b *box) error {
	const connections, size = 20, 300_000
	_, err := b.listening(ctx, false, "next if fork; "+echoAll, func(d contract.Dialer, address string) error {
		errs := make([]error, connections)
		var all sync.WaitGroup
		for i := range errs {
			all.Go(func() { errs[i] = wrap(fmt.Sprintf("connection %d", i), echoes(ctx, d, address, noisy(byte(i), size))) })
		}
		all.Wait()
		return errors.Join(errs...)
	})
	return err
}
