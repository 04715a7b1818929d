package provider_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/conformance"
	"github.com/hermes-dockerbox/dockerbox/contract"
)

// mutant is the real provider with one promise broken. Each function may be nil.
type mutant struct {
	contract.Provider
	config  func(*contract.Config)
	cwd     func(string) string
	info    func(*contract.Info)
	request func(*contract.Request)
	result  func(*contract.Result)
	prefix  func(argv []string, user string, interactive bool) []string
	cleanup func(remove bool) bool
	fetch   func(content []byte) []byte
}

func (m mutant) CreateEnvironment(ctx context.Context, cfg contract.Config, cwd string) (contract.Environment, error) {
	if m.cwd != nil {
		cwd = m.cwd(cwd)
	}
	if m.config != nil {
		m.config(&cfg)
	}
	env, err := m.Provider.CreateEnvironment(ctx, cfg, cwd)
	if err != nil {
		return nil, err
	}
	return mutatedEnvironment{env, m}, nil
}

type mutatedEnvironment struct {
	contract.Environment
	mutant mutant
}

func (e mutatedEnvironment) Info() contract.Info {
	i := e.Environment.Info()
	if e.mutant.info != nil {
		e.mutant.info(&i)
	}
	return i
}

func (e mutatedEnvironment) Execute(ctx context.Context, req contract.Request) (contract.Result, error) {
	if e.mutant.request != nil {
		e.mutant.request(&req)
	}
	r, err := e.Environment.Execute(ctx, req)
	if e.mutant.result != nil {
		e.mutant.result(&r)
	}
	return r, err
}

func (e mutatedEnvironment) ExecPrefix(ctx context.Context, user string, interactive bool) ([]string, error) {
	argv, err := e.Environment.ExecPrefix(ctx, user, interactive)
	if err == nil && e.mutant.prefix != nil {
		argv = e.mutant.prefix(argv, user, interactive)
	}
	return argv, err
}

func (e mutatedEnvironment) Cleanup(ctx context.Context, remove bool) error {
	if e.mutant.cleanup != nil {
		remove = e.mutant.cleanup(remove)
	}
	return e.Environment.Cleanup(ctx, remove)
}

func (e mutatedEnvironment) FetchFile(ctx context.Context, path string, w io.Writer, maxBytes int64) error {
	if e.mutant.fetch == nil {
		return e.Environment.FetchFile(ctx, path, w, maxBytes)
	}
	var content bytes.Buffer
	if err := e.Environment.FetchFile(ctx, path, &content, 0); err != nil {
		return err
	}
	_, err := w.Write(e.mutant.fetch(content.Bytes()))
	return err
}

// Each promise, broken alone on a backend that is right otherwise, is found by the case that is about it.
func TestBrokenPromisesAreFound(t *testing.T) {
	for what, tc := range map[string]struct {
		broken mutant
		found  string
	}{
		"every directory is the lasting one":  {mutant{request: func(r *contract.Request) { r.Dir = "" }}, "directory/given-wins"},
		"a given directory lasts":             {mutant{request: func(r *contract.Request) { moveInto(r) }}, "directory/given-does-not-leak"},
		"unknown directories become the home": {mutant{request: func(r *contract.Request) { r.FallbackDir = "~" }}, "directory/unknown"},
		"~ is expanded on the host":           {mutant{cwd: func(s string) string { return strings.Replace(s, "~", "/etc", 1) }}, "start/tilde"},
		"host paths are taken":                {mutant{cwd: func(s string) string { return strings.TrimPrefix(s, "/Users/me") }}, "start/macos-home"},
		"the home is assumed":                 {mutant{info: func(i *contract.Info) { i.Home = "/root" }}, "home/variable"},
		"names are trimmed":                   {mutant{result: func(r *contract.Result) { r.Cwd = strings.TrimSpace(r.Cwd) }}, "directory/exact-name"},
		"no directory is reported":            {mutant{result: func(r *contract.Result) { r.Cwd = "" }}, "directory/reported"},
		"output becomes text":                 {mutant{result: func(r *contract.Result) { r.Output = bytes.ToValidUTF8(r.Output, []byte("?")) }}, "output/bytes"},
		"output is trimmed":                   {mutant{result: func(r *contract.Result) { r.Output = bytes.TrimSpace(r.Output) }}, "output/text"},
		"the bound is not kept":               {mutant{request: func(r *contract.Request) { r.MaxOutput = 0 }}, "output/bounded"},
		"everything is bounded":               {mutant{request: func(r *contract.Request) { r.MaxOutput = 1 << 20 }}, "output/whole"},
		"output comes at the end":             {mutant{request: func(r *contract.Request) { r.Stdin = nil }}, "output/while-it-runs"},
		"input is lost":                       {mutant{request: func(r *contract.Request) { r.Stdin = nil }}, "input/text"},
		"variables last":                      {mutant{request: exportAll}, "state/variables-of-one-command"},
		"transient names last":                {mutant{request: func(r *contract.Request) { r.Transient = nil }}, "state/transient-names"},
		"words go through a shell":            {mutant{request: throughShell}, "state/exact-words"},
		"strict mode stays on":                {mutant{request: func(r *contract.Request) { r.Command = "set -u\n" + r.Command }}, "state/options-do-not-last"},
		"a time-out is a status alone":        {mutant{result: func(r *contract.Result) { r.TimedOut = false }}, "kill/timed-out"},
		"a time-out is an interrupt":          {mutant{result: func(r *contract.Result) { r.ExitCode = max(r.ExitCode, contract.ExitInterrupted) }}, "kill/timed-out"},
		"partial output is lost":              {mutant{result: loseIfKilled}, "kill/interrupted"},
		"setsid gets away":                    {mutant{request: func(r *contract.Request) { r.Command = escape(r.Command) }}, "kill/own-session"},
		"the recreation is not said":          {mutant{result: func(r *contract.Result) { r.Recreated = false }}, "recreation/next-command-works"},
		"the recreation is said for ever":     {mutant{result: func(r *contract.Result) { r.Recreated = true }}, "recreation/next-command-works"},
		"cleanup always removes":              {mutant{cleanup: func(bool) bool { return true }}, "life/cleanup-detaches"},
		"cleanup never removes":               {mutant{cleanup: func(bool) bool { return false }}, "life/cleanup-with-remove"},
		"settings not given count":            {mutant{config: func(c *contract.Config) { c.Given = nil }}, "changes/not-given"},
		"what is given is left out":           {mutant{config: func(c *contract.Config) { c.Given = []string{} }}, "changes/recreate"},
		"other settings are passed over":      {mutant{config: func(c *contract.Config) { c.Given = []string{} }}, "changes/refused"},
		"a recreation is passed over":         {mutant{config: func(c *contract.Config) { c.Recreate = false }}, "changes/recreate"},
		"nobody adapts":                       {mutant{config: func(c *contract.Config) { c.Adapt = false }}, "changes/adapt"},
		"it changes without a word":           {mutant{info: func(i *contract.Info) { i.Warnings = nil }}, "changes/adapt"},
		"a job is ended for a setting":        {mutant{config: func(c *contract.Config) { c.Recreate = c.Adapt }}, "changes/adapt-beside-a-job"},
		"every handle made it":                {mutant{info: func(i *contract.Info) { i.Created = true }}, "life/created-once"},
		"too large files are cut":             {mutant{fetch: func(b []byte) []byte { return b[:min(len(b), 9)] }}, "files/fetch-limit"},
		"files are made text":                 {mutant{fetch: func(b []byte) []byte { return bytes.ToValidUTF8(b, nil) }}, "files/fetch"},
		"words are joined":                    {mutant{prefix: joined}, "prefix/words-untouched"},
		"input is always open":                {mutant{prefix: func(argv []string, _ string, _ bool) []string { return opened(argv) }}, "prefix/not-interactive"},
		"input is never open":                 {mutant{prefix: func(argv []string, _ string, _ bool) []string { return shut(argv) }}, "prefix/end-of-input"},
		"the program is looked up":            {mutant{prefix: func(argv []string, _ string, _ bool) []string { return append([]string{"docker"}, argv[1:]...) }}, "prefix/list-with-an-absolute-program"},
		"the prefix is another account":       {mutant{prefix: func([]string, string, bool) []string { return []string{"/bin/sh", "-c", "echo 4711; echo 4711"} }}, "prefix/same-account"},
	} {
		t.Run(what, func(t *testing.T) {
			e := newEngine(t)
			p := newProvider(t, e)
			tc.broken.Provider = p
			s := subject(e, p, tc.broken)
			cases := slices.DeleteFunc(conformance.Cases(), func(c conformance.Case) bool { return c.Name != tc.found })
			if len(cases) != 1 {
				t.Fatalf("there is no case %s", tc.found)
			}
			conformance.Run(t.Context(), s, cases, func(o conformance.Outcome) {
				if o.Status != conformance.Fail {
					t.Errorf("%s is %s", o.Name, o.Status)
				}
				t.Logf("%s: %s", o.Name, o.Detail)
			})
		})
	}
}

// moveInto makes the directory of a command a cd of its own.
func moveInto(r *contract.Request) {
	if r.Dir != "" && r.Command != "" {
		r.Command, r.Dir = "cd "+r.Dir+"\n"+r.Command, ""
	}
}

func loseIfKilled(r *contract.Result) {
	if r.Interrupted {
		r.Output = []byte("[Command interrupted]")
	}
}

func exportAll(r *contract.Request) {
	for name, value := range r.Env {
		r.Command = fmt.Sprintf("export %s='%s'\n%s", name, strings.ReplaceAll(value, "'", `'\''`), r.Command)
	}
	r.Env = nil
}

func throughShell(r *contract.Request) {
	if len(r.Argv) > 0 {
		r.Argv = []string{"bash", "-c", strings.Join(r.Argv, " ")}
	}
}

// escape has a command that is to die name process 1 as one of its own, which is the nearest thing to one that got away.
func escape(text string) string {
	return strings.ReplaceAll(text, `$BASHPID >>"$1"`, `1 >>"$1"`)
}

func joined(argv []string, _ string, _ bool) []string {
	return append(argv, "bash", "-c", `eval "$*"`, "bash")
}

func opened(argv []string) []string {
	i := slices.Index(argv, "exec") + 1
	if argv[i] == "-i" {
		return argv
	}
	return slices.Insert(slices.Clone(argv), i, "-i")
}

func shut(argv []string) []string {
	return slices.DeleteFunc(slices.Clone(argv), func(word string) bool { return word == "-i" })
}
