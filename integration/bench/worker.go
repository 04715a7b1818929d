//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// worker is one backend in a Hermes process of its own; see worker.py.
type worker struct {
	label   string
	process *exec.Cmd
	input   io.WriteCloser
	answers chan reply
	gone    chan error // how the process ended
	log     string     // its standard error
	dir     string     // for files of its commands
	// facts are what it said of itself last.
	facts answer
	// silent is why no answer can be told from an earlier one any more.
	silent error
}

var _ subject = (*worker)(nil)

// answer is a line of a worker.
type answer struct {
	NS        []int64 `json:"ns"`
	WholeNS   int64   `json:"whole_ns"`
	Error     string  `json:"error"`
	Container string  `json:"container"`
	Name      string  `json:"name"`
	Serve     int     `json:"serve"`
}

type reply struct {
	answer
	err error
}

// The longest that a worker may take for a job, and to remove what it made.
const (
	jobLimit    = 3 * time.Minute
	removeLimit = 90 * time.Second
)

// startWorker starts Hermes with one backend and waits until its environment is there.
func (b *bench) startWorker(ctx context.Context, backend string) (*worker, error) {
	home := filepath.Join(b.dir, backend)
	if err := b.hermesHome(ctx, home); err != nil {
		return nil, err
	}
	w := &worker{label: backendLabel(backend), answers: make(chan reply, 1), gone: make(chan error, 1), log: filepath.Join(home, "worker.log"), dir: boxDir}
	if backend == hermesLocal {
		w.dir = home
	}
	log, err := os.Create(w.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	// No CommandContext: a worker that is killed removes nothing. It ends by the end of its input.
	w.process = exec.Command(b.python, b.script("worker.py"), "--backend", backend, "--image", b.image, "--dockerbox", b.dockerbox)
	w.process.Dir, w.process.Env, w.process.Stderr = home, b.environ(home), log
	w.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // ^C at a terminal is this program's to hear
	if w.input, err = w.process.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := w.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.process.Start(); err != nil {
		return nil, err
	}
	b.atEnd("remove what the Hermes with "+backend+" left", func(ctx context.Context) error { return b.removeLeft(ctx, w) })
	b.atEnd("end the Hermes with "+backend, w.end)
	go w.read(stdout)
	if w.facts, err = w.next(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", w.label, err)
	}
	return w, nil
}

// backendLabel is what rows call a backend of Hermes.
func backendLabel(backend string) string {
	if backend == "dockerbox" {
		return "dockerbox through Hermes"
	}
	return "built-in " + backend
}

func (w *worker) name() string { return w.label }

func (w *worker) do(ctx context.Context, j job) (timing, error) {
	a, err := w.ask(ctx, j)
	if err != nil {
		return timing{}, err
	}
	t := timing{whole: time.Duration(a.WholeNS)}
	for _, ns := range a.NS {
		t.each = append(t.each, time.Duration(ns))
	}
	return t, nil
}

func (w *worker) ask(ctx context.Context, j job) (answer, error) {
	line, err := json.Marshal(j.in(w.dir))
	if err != nil {
		return answer{}, err
	}
	if w.silent != nil {
		return answer{}, w.silent
	}
	if _, err := w.input.Write(append(line, '\n')); err != nil {
		return answer{}, fmt.Errorf("asking it: %w%s", err, w.lastWords())
	}
	a, err := w.next(ctx)
	if a.Serve != 0 {
		w.facts = a
	}
	return a, err
}

// next is the worker's next answer.
func (w *worker) next(ctx context.Context) (answer, error) {
	limit := time.NewTimer(jobLimit)
	defer limit.Stop()
	select {
	case r, open := <-w.answers:
		switch {
		case !open:
			return answer{}, fmt.Errorf("it ended%s", w.lastWords())
		case r.err != nil:
			return answer{}, r.err
		}
		return r.answer, nil
	case <-limit.C:
		w.silent = fmt.Errorf("it gave no answer within %s%s", jobLimit, w.lastWords())
	case <-ctx.Done():
		w.silent = context.Cause(ctx)
	}
	return answer{}, w.silent
}

// read hands on answers until the process has ended.
func (w *worker) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		w.answers <- parseReply(lines.Bytes())
	}
	if err := lines.Err(); err != nil {
		w.answers <- reply{err: err}
	}
	close(w.answers)
	w.gone <- w.process.Wait()
}

func parseReply(line []byte) (r reply) {
	if err := json.Unmarshal(line, &r.answer); err != nil {
		return reply{err: fmt.Errorf("%.100q is no answer: %w", line, err)}
	}
	if r.Error != "" {
		r.err = errors.New(r.Error)
	}
	return r
}

// end has the worker remove what it made.
func (w *worker) end(context.Context) error {
	_ = w.input.Close() // closed already where the process has gone
	go func() {
		for range w.answers { // to a question that nobody waits for any more
		}
	}()
	limit := time.NewTimer(removeLimit)
	defer limit.Stop()
	select {
	case err := <-w.gone:
		if err != nil {
			return fmt.Errorf("%w%s", err, w.lastWords())
		}
		return nil
	case <-limit.C:
		_ = w.process.Process.Kill()
		return fmt.Errorf("it did not end within %s and was killed%s", removeLimit, w.lastWords())
	}
}

// removeLeft removes what a worker that died could not. Nothing is there after any other.
func (b *bench) removeLeft(ctx context.Context, w *worker) error {
	switch {
	case w.facts.Name != "":
		return b.provider.Remove(ctx, w.facts.Name, provider.RemoveOptions{Force: true})
	case w.facts.Container != "":
		return b.engine.Remove(ctx, w.facts.Container)
	}
	return nil
}

// lastWords is the end of what the worker wrote for people.
func (w *worker) lastWords() string {
	const most = 600
	log, err := os.ReadFile(w.log)
	text := strings.TrimSpace(string(log[max(0, len(log)-most):]))
	if err != nil || text == "" {
		return ""
	}
	return ", having said: " + text
}
