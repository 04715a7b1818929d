//go:build unix

package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"testing"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// FuzzServer feeds lines nobody wrote on purpose: the server must end when its input does, and every line it wrote is JSON.
// Commands are not run here, because their text is random.
func FuzzServer(f *testing.F) {
	const open = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocol":1}}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"create","params":{}}` + "\n"
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":3,"method":"execute","params":{"env":"e1","command":"x","window":65536}}` + "\n" + `{"jsonrpc":"2.0","method":"credit","params":{"call":3,"bytes":9223372036854775807}}`,
		`{"jsonrpc":"2.0","id":3,"method":"execute","params":{"env":"e1","argv":["x"],"stream_stdin":true,"max_output":5}}` + "\n" + `{"jsonrpc":"2.0","method":"stdin","params":{"call":3,"data":"eA==","eof":true}}`,
		`{"jsonrpc":"2.0","id":3,"method":"execute","params":{"env":"e1","command_b64":"eA==","cwd_b64":"/w==","stdin":"eA==","timeout_ms":1}}`,
		`{"jsonrpc":"2.0","method":"cancel","params":{"call":3,"cause":"timeout"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"realpath","params":{"env":"e1","path_b64":"/w=="}}`,
		`{"jsonrpc":"2.0","id":4,"method":"exec_prefix","params":{"env":"e1","user":"a","interactive":null}}`,
		`{"jsonrpc":"2.0","id":4,"method":"cleanup","params":{"env":"e1","remove":true}}`,
		`{"jsonrpc":"2.0","id":4,"method":"fetch","params":{"env":"e1","path":"x","dest":"rel"}}`,
		`[{}]`, `{"id":{"a":1},"jsonrpc":"2.0","method":"probe"}`, "\x00\n\n{", `{"jsonrpc":"2.0","id":18446744073709551616,"method":"probe"}`,
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed+"\n"), false)
	}
	f.Fuzz(func(t *testing.T, in []byte, greeted bool) {
		if greeted {
			in = append([]byte(open), in...)
		}
		if bytes.Contains(in, []byte("fetch")) && bytes.Contains(in, []byte("dest")) && bytes.Contains(in, []byte("/")) {
			return // would write where chance says
		}
		var out bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := (&Server{Provider: idle{}, Limit: 8}).Serve(ctx, bytes.NewReader(in), &out); err != nil {
			t.Fatalf("Serve: %v", err)
		}
		for _, l := range bytes.Split(bytes.TrimSuffix(out.Bytes(), []byte("\n")), []byte("\n")) {
			if !json.Valid(l) {
				t.Fatalf("the server wrote %q", l)
			}
		}
	})
}

// idle has sandboxes in which every command copies its input and says so.
type idle struct{}

func (idle) Name() string          { return "idle" }
func (idle) DefaultCwd() string    { return "/" }
func (idle) SupportsStreams() bool { return false }
func (idle) Probe(context.Context) contract.Health {
	return contract.Health{Status: contract.NeedsSetup}
}
func (idle) CreateEnvironment(_ context.Context, c contract.Config, _ string) (contract.Environment, error) {
	if f := c.Validate(); f != nil {
		return nil, f
	}
	return idle{}, nil
}
func (idle) Info() contract.Info { return contract.Info{Name: "idle", Home: "/\xff"} }
func (idle) Execute(ctx context.Context, r contract.Request) (contract.Result, error) {
	res := contract.Result{Cwd: r.Dir + "\xff", Output: []byte(r.Command)}
	if r.Stdout != nil {
		if _, err := r.Stdout.Write(bytes.Repeat([]byte("0123456789"), 20000)); err != nil {
			return res, err
		}
		res.Output = nil
	}
	if r.Stdin != nil {
		if _, err := io.Copy(io.Discard, r.Stdin); err != nil {
			return res, err
		}
	}
	if cause := context.Cause(ctx); cause != nil {
		res = contract.Killed(res, cause, r.Timeout)
	}
	return res, nil
}
func (idle) ExecPrefix(context.Context, string, bool) ([]string, error) { return []string{"x"}, nil }
func (idle) FetchFile(context.Context, string, io.Writer, int64) error  { return contract.ErrTooLarge }
func (idle) Realpath(_ context.Context, p string) (string, error)       { return p, nil }
func (idle) Cleanup(context.Context, bool) error                        { return nil }
