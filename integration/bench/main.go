//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// options are the flags.
type options struct {
	json, only   string
	quick, write bool
}

func main() {
	os.Exit(start(os.Args[1:], os.Stdout, os.Stderr)) //nolint:forbidigo // this is main
}

// start returns the exit status: 0 when everything was measured, whatever came out, 1 when a measurement failed or something is left
// behind, 2 for wrong flags, 130 after an interrupt.
func start(args []string, out, log io.Writer) int {
	o, err := parse(args, log)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(log, "bench: error:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop() // a second signal is ignored: what was made has to go
	err = measure(ctx, o, out, log)
	if err != nil {
		fmt.Fprintln(log, "bench: error:", err)
	}
	switch {
	case ctx.Err() != nil:
		return 130
	case err != nil:
		return 1
	}
	return 0
}

func parse(args []string, log io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar(&o.json, "json", "", "write the figures as JSON to this `file`, - for stdout in place of the table")
	flags.StringVar(&o.only, "only", "", "measure these `parts` alone, with commas between")
	flags.BoolVar(&o.quick, "quick", false, "few rounds: to see that everything works, not for figures")
	flags.BoolVar(&o.write, "write", false, "write docs/benchmarks.md")
	flags.Usage = func() {
		fmt.Fprintln(log, "usage: bench [--json FILE|-] [--only PART[,PART]] [--quick] [--write], in the repository\n\nparts:")
		for _, p := range parts {
			fmt.Fprintf(log, "  %-10s %s\n", p.name, p.what)
		}
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if _, err := chosen(parts, o.only); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() > 0:
		return o, fmt.Errorf("%q is no flag", flags.Arg(0))
	case o.write && (o.quick || o.only != ""):
		return o, errors.New("docs/benchmarks.md holds whole runs: --write goes without --quick and --only")
	}
	return o, nil
}

// measure runs the parts and reports.
func measure(ctx context.Context, o options, out, log io.Writer) (err error) {
	root, err := repository()
	if err != nil {
		return err
	}
	began := time.Now()
	say := func(format string, args ...any) {
		fmt.Fprintf(log, "bench: %5.1f s: %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	b, err := newBench(root, o.quick, say)
	defer func() {
		say("remove what was made")
		err = errors.Join(err, b.close())
	}()
	if err != nil {
		return err
	}
	r, err := b.newReport(ctx)
	if err != nil {
		return err
	}
	wanted, err := chosen(parts, o.only)
	if err != nil {
		return err
	}
	failed := b.runParts(ctx, wanted, &r)
	r.Seconds = time.Since(began).Seconds()
	return errors.Join(failed, publish(r, o, root, out))
}

// runParts adds the rows of each part. One that fails does not keep the others from being measured.
func (b *bench) runParts(ctx context.Context, wanted []part, r *report) error {
	var errs []error
	for _, p := range wanted {
		if ctx.Err() != nil {
			r.Failed = append(r.Failed, "interrupted")
			return errors.Join(append(errs, errors.New("interrupted"))...)
		}
		b.say("%s: %s", p.name, p.what)
		rows, err := p.run(ctx, b)
		if err == nil {
			err = invalid(rows)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", p.name, err)
			errs = append(errs, err)
			r.Failed = append(r.Failed, err.Error())
			continue
		}
		r.Rows = append(r.Rows, rows...)
	}
	return errors.Join(errs...)
}

// publish writes what was measured, to where the options say.
func publish(r report, o options, root string, out io.Writer) error {
	if o.json != "-" {
		if err := writeTable(out, r); err != nil {
			return err
		}
	}
	if o.json != "" {
		text, err := json.MarshalIndent(r, "", "  ")
		if err != nil {
			return err
		}
		text = append(text, '\n')
		if o.json == "-" {
			_, err = out.Write(text)
		} else {
			err = os.WriteFile(o.json, text, 0o644)
		}
		if err != nil {
			return err
		}
	}
	if !o.write {
		return nil
	}
	if len(r.Failed) > 0 {
		return errors.New("docs/benchmarks.md stays as it is, for not everything was measured")
	}
	return os.WriteFile(filepath.Join(root, "docs", "benchmarks.md"), []byte(markdown(r)), 0o644)
}

// repository is the directory with go.mod, from the current one upwards.
func repository() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		text, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module github.com/hermes-dockerbox/dockerbox\n") {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s is not within the repository of dockerbox", dir)
		}
	}
}
