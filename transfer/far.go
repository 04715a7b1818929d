package transfer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/archive"
	"github.com/hermes-dockerbox/dockerbox/internal/wire"
)

// synchronized lets Progress and Warn be called from both sides of a copy.
func (o Options) synchronized() Options {
	var mu sync.Mutex
	if warn := o.Warn; warn != nil {
		o.Warn = func(text string) {
			mu.Lock()
			defer mu.Unlock()
			warn(text)
		}
	} else {
		o.Warn = func(string) {}
	}
	if progress := o.Progress; progress != nil {
		o.Progress = func(t Totals) {
			mu.Lock()
			defer mu.Unlock()
			progress(t)
		}
	}
	return o
}

func (o Options) packWords(source string, plain bool) []string {
	words := []string{wire.AgentPath, "pack"}
	if o.Tree {
		words = append(words, "-r")
	}
	if plain {
		words = append(words, "--tar")
	}
	return append(words, "--", source)
}

func (o Options) unpackWords(dest, name string, plain bool) []string {
	words := []string{wire.AgentPath, "unpack"}
	if plain {
		words = append(words, "--tar")
	}
	if o.Parents {
		words = append(words, "--parents")
	}
	return append(words, "--name", name, "--", dest)
}

// sandboxPath makes a path in the sandbox absolute as far as its last part goes: the agent knows the rest.
func sandboxPath(name string) string {
	if name == "~" { // its contents: a home has no name that anybody meant
		return "/"
	}
	if strings.HasPrefix(name, "/") || name == "." || strings.HasSuffix(name, "/.") {
		return name
	}
	return path.Join("/", name)
}

// far is the agent's side of a copy.
type far struct {
	o     Options
	said  said
	ended chan struct{} // closed when the command is over
	err   error         // how; valid then
	out   *io.PipeReader
}

// farError is a failure of the other side, on its way through a reader. It does not unwrap: whoever reads must not take its cause for a failure
// of this side.
type farError struct{ error }

// receive runs the agent's words, whose output is read from r.
func (o Options) receive(ctx context.Context, box Sandbox, words []string) (r io.Reader, f *far) {
	out, in := io.Pipe()
	f = &far{o: o, ended: make(chan struct{}), out: out}
	f.said.warn = o.Warn
	go func() {
		defer close(f.ended)
		result, err := box.Execute(ctx, contract.Request{Argv: words, User: o.User, Stdout: in, Stderr: &f.said})
		f.err = f.outcome(result, err)
		if f.err != nil && !IsPartial(f.err) {
			_ = in.CloseWithError(&farError{f.err}) // never fails
			return
		}
		_ = in.Close() // never fails
	}()
	return out, f
}

// rest makes sure that nothing comes behind a whole archive.
func (f *far) rest() error {
	const most = 64 << 10 // what some programs fill an archive up with
	n, err := io.Copy(io.Discard, io.LimitReader(f.out, most+1))
	if err == nil && n > most {
		return &archive.Fault{Kind: archive.Broken, Problem: "there is more behind the archive's end"}
	}
	return err
}

// conclude ends the agent's part and returns what is to be said of the copy. mine is the failure of this side, or the other's.
func (f *far) conclude(ctx context.Context, mine error) error {
	_ = f.out.CloseWithError(errNoReader) // never fails; ends a command that still writes
	<-f.ended
	var theirs *farError
	switch {
	case ctx.Err() != nil:
		return interrupted(ctx)
	case errors.As(mine, &theirs):
		return theirs.error
	case mine != nil:
		return trouble(here, mine)
	default:
		return f.err
	}
}

var errNoReader = errors.New("the copy is over")

func (f *far) totals() Totals { return f.said.totals }

// send runs the agent's words with what pack writes as their input. When the command is over, whoever still packs finds that out with its next
// write. With endless it is not waited for before: it may be reading something that never ends.
func (o Options) send(ctx context.Context, box Sandbox, words []string, endless bool, pack func(io.Writer) (Totals, error)) (Totals, error) {
	r, w := io.Pipe()
	type packed struct {
		totals Totals
		err    error
	}
	done := make(chan packed, 1)
	var whole atomic.Bool // all was packed, or failed to be
	go func() {
		b := bufio.NewWriterSize(w, pieceSize)
		totals, err := pack(b)
		sent := b.Flush()
		whole.Store(true)
		if err == nil || IsPartial(err) {
			_ = w.CloseWithError(sent) // never fails
			err = errors.Join(err, sent)
		} else {
			_ = w.CloseWithError(err) // never fails; the archive has no end then, so no file is taken for whole
		}
		done <- packed{totals, err}
	}()
	f := &far{o: o}
	f.said.warn = o.Warn
	result, err := box.Execute(ctx, contract.Request{Argv: words, User: o.User, Stdin: r, Stdout: io.Discard, Stderr: &f.said})
	_ = r.CloseWithError(errNoReader) // never fails; ends whoever still packs
	var mine packed
	if !endless || whole.Load() {
		mine = <-done
	}
	if mine.totals == (Totals{}) {
		mine.totals = f.said.totals
	}
	if ctx.Err() != nil {
		return mine.totals, interrupted(ctx)
	}
	if mine.err != nil && !errors.Is(mine.err, errNoReader) && !IsPartial(mine.err) {
		return mine.totals, trouble(here, mine.err)
	}
	if err := f.outcome(result, err); err != nil {
		return mine.totals, err
	}
	if mine.err != nil {
		return mine.totals, trouble(here, mine.err)
	}
	return mine.totals, nil
}

// outcome is what the end of the agent's command means.
func (f *far) outcome(result contract.Result, err error) error {
	f.said.end()
	switch {
	case err != nil:
		return err
	case result.ExitCode == 0:
		return nil
	case result.ExitCode == exitUsage: // of none of its failures
		return &contract.BackendError{
			Reason: "the agent in the sandbox is older than this dockerbox and cannot copy files", Hint: "dockerbox up --recreate gives the sandbox a new one and keeps the home",
		}
	}
	path, problem, named := strings.Cut(f.said.failure, "\t")
	if !named {
		path, problem = "", f.said.failure
	}
	if name, err := strconv.Unquote(path); err == nil {
		path = name
	}
	if problem == "" {
		problem = "the agent in the sandbox ended with status " + strconv.Itoa(result.ExitCode)
	}
	return trouble(there, &archive.Fault{Kind: archive.Kind(result.ExitCode), Path: path, Problem: problem})
}

// exitUsage is the agent's status for words it does not know.
const exitUsage = 2

// said takes what the agent says on stderr, line by line, within bounds.
type said struct {
	warn    func(string)
	line    []byte
	count   int
	failure string
	totals  Totals
}

const (
	maxLine  = 16 << 10 // bytes of a line that are kept
	maxLines = 1000     // warnings that are passed on
)

func (s *said) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		line, more, ended := bytes.Cut(rest, []byte("\n"))
		s.line = append(s.line, line[:min(len(line), maxLine-len(s.line))]...)
		if rest = more; ended {
			s.end()
		}
	}
	return len(p), nil
}

// end takes the line at hand.
func (s *said) end() {
	line := string(s.line)
	s.line = s.line[:0]
	if text, is := strings.CutPrefix(line, "warning: "); is {
		if s.count++; s.count <= maxLines {
			s.warn(text)
		}
	} else if text, is := strings.CutPrefix(line, "failure: "); is {
		s.failure = text
	} else if text, is := strings.CutPrefix(line, "totals: "); is {
		files, bytes, _ := strings.Cut(text, " ")
		s.totals.Files, _ = strconv.ParseInt(files, 10, 64) // what is no number is 0
		s.totals.Bytes, _ = strconv.ParseInt(bytes, 10, 64)
	} else if s.failure == "" && line != "" && s.count == 0 {
		s.failure = line // of whatever could not even start it
	}
}
