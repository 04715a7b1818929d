package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/desktop"
	"github.com/hermes-dockerbox/dockerbox/provider"
)

type logsOptions struct {
	follow, screen, json bool
	tail                 lineCount
	since                moment
}

func newLogs(std streams, open opener) *cobra.Command {
	o := logsOptions{tail: -1}
	c := &cobra.Command{
		Use:        "logs [OPTIONS] NAME",
		Short:      "Show what became of a sandbox",
		SuggestFor: []string{"log"},
		Long: `Show the log of the sandbox NAME, also of one that is stopped: when its agent came up,
login profiles that did not end, jobs it had to end, and whatever processes wrote to
/proc/1/fd/1. What commands print is their caller's and not among it. The log goes with
the container, and keeps its last megabyte where the daemon can do that.

--desktop shows instead what the programs of its screen said, which takes a running
sandbox.`,
		Args:        oneName,
		Annotations: map[string]string{exitCodes: exitPlain + "\n  130  interrupted"},
		RunE: func(c *cobra.Command, args []string) error {
			if o.screen && (o.json || o.since.given) {
				return &usageError{problem: "what a screen said has no times, so --desktop goes with neither --since nor --json"}
			}
			ctx := c.Context()
			run := runLogs
			if o.screen {
				run = screenLog
			}
			return quietly(ctx, run(ctx, std, open, &o, args[0], time.Now()))
		},
	}
	f := c.Flags()
	f.BoolVarP(&o.follow, "follow", "f", false, "go on with lines as they come, until the sandbox ends")
	f.VarP(&o.tail, "tail", "n", "`N` lines from the end; all for all of them")
	f.Var(&o.since, "since", "leave out what is older: a `TIME` ago such as 10m, or a date such as 2026-11-30T12:00:00Z")
	f.BoolVar(&o.screen, "desktop", false, "what the screen's programs said")
	f.BoolVar(&o.json, "json", false, "print JSON, a line each")
	return c
}

// quietly makes an interrupt the usual end of what goes on until then.
func quietly(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), contract.ErrInterrupted) {
		return statusError(contract.ExitInterrupted)
	}
	return err
}

// logLine is what logs --json prints for each line.
type logLine struct {
	Schema int    `json:"schema"`
	Time   string `json:"time"` // RFC 3339
	Line   string `json:"line"`
}

func runLogs(ctx context.Context, std streams, open opener, o *logsOptions, name string, now time.Time) error {
	p, err := open()
	if err != nil {
		return err
	}
	w := &logWriter{w: std.out, json: o.json}
	err = p.Logs(ctx, name, provider.LogOptions{Follow: o.follow, Tail: int(o.tail), Since: o.since.from(now)}, w)
	if err == nil {
		err = w.flush()
	}
	return errors.Join(err, p.Close())
}

// logWriter prints lines that each begin with a time: with it in local time, or as JSON.
type logWriter struct {
	w    io.Writer
	json bool
	raw  bool // lines without a time
	half []byte
}

func (l *logWriter) Write(p []byte) (int, error) {
	l.half = append(l.half, p...)
	for {
		line, rest, whole := bytes.Cut(l.half, []byte("\n"))
		if !whole && len(line) < maxLogLine {
			return len(p), nil
		}
		if err := l.print(string(line)); err != nil {
			return 0, err
		}
		l.half = bytes.Clone(rest)
	}
}

// maxLogLine is where a line is broken that does not end: what a sandbox writes is not to fill this program's memory.
const maxLogLine = 64 << 10

// flush prints a last line without an end.
func (l *logWriter) flush() error {
	if len(l.half) == 0 {
		return nil
	}
	return l.print(string(l.half))
}

func (l *logWriter) print(line string) error {
	stamp, text, _ := strings.Cut(line, " ")
	at, err := time.Parse(time.RFC3339Nano, stamp)
	switch {
	case err != nil, l.raw:
		return say(l.w, "%s\n", oneLine(line))
	case l.json:
		return printJSON(l.w, logLine{schema, at.UTC().Format(time.RFC3339Nano), text})
	}
	return say(l.w, "%s  %s\n", at.Local().Format("2006-01-02 15:04:05"), oneLine(text))
}

// screenLog shows the screen's own log with a program that every image has.
func screenLog(ctx context.Context, std streams, open opener, o *logsOptions, name string, _ time.Time) error {
	return withSandbox(ctx, open, name, func(ctx context.Context, env contract.Environment) error {
		st, err := desktop.Look(ctx, env)
		if err != nil {
			return err
		}
		file := path.Join(path.Dir(st.Socket), "launcher.log")
		if !st.Running {
			return &contract.BackendError{
				Reason: fmt.Sprintf("sandbox %q has no screen running", name), Hint: fmt.Sprintf("dockerbox desktop start %s starts it", name),
			}
		}
		words := []string{"tail", "-n", o.tail.plus()}
		if o.follow {
			words = append(words, "-F")
		}
		w := &logWriter{w: std.out, raw: true}
		res, err := env.Execute(ctx, contract.Request{Argv: append(words, "--", file), User: st.Account, Stdout: w, Stderr: std.err})
		switch {
		case err != nil:
			return err
		case res.ExitCode != 0:
			return &contract.BackendError{
				Reason: fmt.Sprintf("the file %s in sandbox %q cannot be read", file, name), Hint: fmt.Sprintf("dockerbox exec %s ls -l %s shows what is there", name, path.Dir(file)),
			}
		}
		return w.flush()
	})
}

// lineCount is a number of lines, negative for all.
type lineCount int

// Set implements pflag.Value.
func (n *lineCount) Set(text string) error {
	if text == "all" {
		*n = -1
		return nil
	}
	i, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return errors.New("must be " + valueOf(n.Type()))
	}
	*n = lineCount(i)
	return nil
}

// String implements pflag.Value.
func (n *lineCount) String() string {
	if *n < 0 {
		return "all"
	}
	return strconv.Itoa(int(*n))
}

// Type implements pflag.Value.
func (n *lineCount) Type() string { return "lines" }

// plus is n for tail, which counts all lines from the first.
func (n *lineCount) plus() string {
	if *n < 0 {
		return "+1"
	}
	return n.String()
}

// moment is a point in time, given as such or as how long ago it is.
type moment struct {
	given bool
	text  string
	at    time.Time
	ago   time.Duration
}

// Set implements pflag.Value.
func (m *moment) Set(text string) error {
	*m = moment{given: true, text: text}
	ago, err := time.ParseDuration(text)
	if err == nil && ago >= 0 {
		m.ago = ago
		return nil
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly} {
		if m.at, err = time.ParseInLocation(layout, text, time.Local); err == nil {
			return nil
		}
	}
	return errors.New("must be " + valueOf(m.Type()))
}

// String implements pflag.Value.
func (m *moment) String() string { return m.text }

// Type implements pflag.Value.
func (m *moment) Type() string { return "moment" }

// from is the point itself, the zero time when none was given.
func (m *moment) from(now time.Time) time.Time {
	switch {
	case !m.given:
		return time.Time{}
	case m.at.IsZero():
		return now.Add(-m.ago)
	}
	return m.at
}
