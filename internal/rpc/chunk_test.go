package rpc

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestParseChunk(t *testing.T) {
	for name, tc := range map[string]struct {
		line string
		want *chunkParams // nil: left to the general way
	}{
		"compact":        {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":"aGk="}}`, &chunkParams{Call: 7, Data: []byte("hi")}},
		"spaced":         {`{"jsonrpc": "2.0", "method": "stdin", "params": {"call": 123456789012345678, "data": "", "eof": true}}`, &chunkParams{Call: 123456789012345678, EOF: true}},
		"not yet":        {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":"aGk=","eof":false}}`, &chunkParams{Call: 7, Data: []byte("hi")}},
		"raw":            {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"raw":65536}}`, &chunkParams{Call: 7, Raw: 65536}},
		"raw at the end": {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"raw":2,"eof":true}}`, &chunkParams{Call: 7, Raw: 2, EOF: true}},
		"raw of nothing": {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"raw":0}}`, nil},
		"another method": {`{"jsonrpc":"2.0","method":"output","params":{"call":7,"data":"aGk="}}`, nil},
		"another order":  {`{"jsonrpc":"2.0","method":"stdin","params":{"data":"aGk=","call":7}}`, nil},
		"escape":         {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":"aGk\u003d"}}`, nil},
		"not base64":     {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":"a"}}`, nil},
		"fraction":       {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7.5,"data":""}}`, nil},
		"leading zero":   {`{"jsonrpc":"2.0","method":"stdin","params":{"call":07,"data":""}}`, nil},
		"too long":       {`{"jsonrpc":"2.0","method":"stdin","params":{"call":1234567890123456789,"data":""}}`, nil},
		"more fields":    {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":"","x":1}}`, nil},
		"cut":            {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":"aGk=`, nil},
		"more behind":    {`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":""}} x`, nil},
		"nothing":        {``, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := parseChunk([]byte(tc.line), methodStdin)
			if ok != (tc.want != nil) {
				t.Fatalf("taken: %v, %+v", ok, got)
			}
			if ok && (got.Call != tc.want.Call || got.Raw != tc.want.Raw || got.EOF != tc.want.EOF || !bytes.Equal(got.Data, tc.want.Data)) {
				t.Fatalf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

// Whatever the short way takes, the general way reads alike; and what this package writes, the short way takes.
func FuzzParseChunk(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","method":"stdin","params":{"call":7,"data":"aGk=","eof":true}}`), int64(7), true)
	f.Add([]byte(`{"jsonrpc": "2.0", "method": "stdin", "params": {"call": 7, "data": "aGk="}}`), int64(1), false)
	f.Fuzz(func(t *testing.T, b []byte, call int64, eof bool) {
		if got, ok := parseChunk(b, methodStdin); ok {
			var m envelope
			var want chunkParams
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatalf("took %q, which is not JSON: %v", b, err)
			}
			if err := json.Unmarshal(m.Params, &want); err != nil || m.Method != methodStdin || m.ID != nil ||
				got.Call != want.Call || got.EOF != want.EOF || !bytes.Equal(got.Data, want.Data) {
				t.Fatalf("%q: got %+v, want %+v, %v", b, got, want, err)
			}
		}
		call = call&(1<<53-1) | 1
		got, ok := parseChunk(appendChunk(nil, methodStdin, call, b, eof), methodStdin)
		if !ok || got.Call != call || got.EOF != eof || !bytes.Equal(got.Data, b) {
			t.Fatalf("what was written for %q was read as %+v, %v", b, got, ok)
		}
	})
}
