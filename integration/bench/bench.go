//go:build linux

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/image"
	"github.com/hermes-dockerbox/dockerbox/internal/engine"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

// bench is what parts share. What they need is started when the first asks for it, and removed at the end.
type bench struct {
	quick     bool
	root      string // of the repository
	dir       string // for files, removed at the end
	python    string // with Hermes
	dockerbox string // the executable
	image     string // of every container
	tag       string // in the names of all that is made
	say       func(format string, args ...any)
	provider  *provider.Provider
	engine    *engine.Engine

	mu      sync.Mutex // of what is below
	ends    []ending
	workers map[string]*worker
	box     *goPath
	plain   *dockerExec
}

// ending removes something.
type ending struct {
	what string
	do   func(context.Context) error
}

// newBench looks for what every part needs. Whatever it returns has to be closed.
func newBench(root string, quick bool, say func(string, ...any)) (*bench, error) {
	b := &bench{
		quick: quick, root: root, image: image.DefaultTag, tag: "t-bench-" + strings.ToLower(rand.Text()[:8]), say: say,
		workers: map[string]*worker{},
		python:  filepath.Join(root, "build", "hermes", "bin", "python"), dockerbox: filepath.Join(root, "bin", "dockerbox"),
	}
	for file, remedy := range map[string]string{b.python: "make hermes-venv", b.dockerbox: "make build"} {
		if _, err := os.Stat(file); err != nil {
			return b, fmt.Errorf("%w: run `%s`", err, remedy)
		}
	}
	var err error
	if b.dir, err = os.MkdirTemp("", "dockerbox-bench-"); err != nil {
		return b, err
	}
	b.atEnd("remove "+b.dir, func(context.Context) error { return os.RemoveAll(b.dir) })
	if b.provider, err = provider.New(provider.Endpoint{}); err != nil {
		return b, err
	}
	b.atEnd("close the provider", func(context.Context) error { return b.provider.Close() })
	if b.engine, err = engine.Open(engine.Endpoint{}); err != nil {
		return b, err
	}
	b.atEnd("close the engine", func(context.Context) error { return b.engine.Close() })
	return b, nil
}

// count is n, or few of it in a quick run.
func (b *bench) count(n, few int) int {
	if b.quick {
		return few
	}
	return n
}

// atEnd has something done at the end, before what was made earlier is removed.
func (b *bench) atEnd(what string, do func(context.Context) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ends = append(b.ends, ending{what, do})
}

// closeLimit bounds the removal of all that was made: 250 containers at worst, on a machine that is busy.
const closeLimit = 4 * time.Minute

// close removes everything that was made. Its context is not the caller's, which may be over.
func (b *bench) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
	defer cancel()
	b.mu.Lock()
	ends := b.ends
	b.ends = nil
	b.mu.Unlock()
	var errs []error
	for i := len(ends) - 1; i >= 0; i-- {
		if err := ends[i].do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", ends[i].what, err))
		}
	}
	return errors.Join(errs...)
}

func (b *bench) script(name string) string {
	return filepath.Join(b.root, "integration", "bench", name)
}

// hermesHome is a user's home with the plugin, and a sandbox that is not the user's.
func (b *bench) hermesHome(ctx context.Context, home string) error {
	hermes := filepath.Join(home, ".hermes")
	if err := os.MkdirAll(hermes, 0o700); err != nil {
		return err
	}
	config := fmt.Sprintf("terminal:\n  backend: dockerbox\n  backends:\n    dockerbox:\n      sandbox: %s-hermes\nplugins:\n  enabled: [dockerbox]\n", b.tag)
	if err := os.WriteFile(filepath.Join(hermes, "config.yaml"), []byte(config), 0o600); err != nil {
		return err
	}
	_, err := b.output(ctx, b.dockerbox, "plugin", "install", "--home", hermes)
	return err
}

// environ is what a Hermes of ours sees: nothing of the person who runs this, no keys, no proxies.
func (b *bench) environ(home string) []string {
	env := []string{
		"HOME=" + home, "HERMES_HOME=" + filepath.Join(home, ".hermes"), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "TERM=dumb",
		"PYTHONDONTWRITEBYTECODE=1",
		// Whatever tries to leave the machine fails at once instead of waiting for an answer.
		"HTTP_PROXY=http://127.0.0.1:9", "HTTPS_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
	}
	for _, name := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// output runs a program that has to succeed and returns what it printed.
func (b *bench) output(ctx context.Context, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	out, err := c.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%s %.100s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// config is that of a sandbox with the limits that Hermes gives every container.
func (b *bench) config(name string) contract.Config {
	cfg := contract.Defaults()
	cfg.Name, cfg.Image = b.tag+"-"+name, b.image
	return cfg
}

// sandbox makes a sandbox for the Go path, which goes at the end.
func (b *bench) sandbox(ctx context.Context, cfg contract.Config) (contract.Environment, error) {
	b.atEnd("remove sandbox "+cfg.Name, func(ctx context.Context) error {
		return b.provider.Remove(ctx, cfg.Name, provider.RemoveOptions{Force: true})
	})
	env, err := b.provider.CreateEnvironment(ctx, cfg, "")
	if err != nil {
		return nil, err
	}
	b.atEnd("let go of sandbox "+cfg.Name, func(ctx context.Context) error { return env.Cleanup(ctx, false) })
	return env, nil
}

// discard counts what it drops.
type discard struct{ bytes int64 }

func (d *discard) Write(p []byte) (int, error) {
	d.bytes += int64(len(p))
	return len(p), nil
}

// endless is standard input of that many bytes of a log.
func endless(size int64) io.Reader { return io.LimitReader(&logFile{}, size) }

// logFile repeats logPiece.
type logFile struct{ at int }

func (l *logFile) Read(p []byte) (int, error) {
	n := copy(p, logPiece()[l.at:])
	l.at = (l.at + n) % len(logPiece())
	return n, nil
}

// logPiece is a mebibyte as programs write logs: what bulk is in practice, with times that repeat and numbers that do not. One letter again
// and again would flatter whoever packs it. worker.py and bulkMake have the same in their languages.
var logPiece = sync.OnceValue(func() []byte {
	const size = 1 << 20
	var b []byte
	for i, x := 0, 7; len(b) < size; i++ {
		x = (x*1237 + 211) % 65521
		b = fmt.Appendf(b, "2026-11-30T12:%02d:%02d INFO request %06d GET /api/v%d/items/%d status=%d took %d ms\n", i/60%60, i%60, x*7+i, x%3, x%9973, 200+x%5, x%997)
	}
	return b[:size]
})
