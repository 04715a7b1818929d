package rpc

import (
	"bytes"
	"encoding/base64"
)

// Bulk travels in output and stdin notifications, and encoding/json walks such a line four times to find its three fields. parseChunk
// reads the form in which every encoder writes them in one walk; for anything else it gives up and the general way is taken.

// parseChunk reads a notification of the given method. ok is false when line is something else, or written otherwise.
func parseChunk(line []byte, method string) (p chunkParams, ok bool) {
	s := scanner{rest: line, ok: true}
	s.words(`{`, `"jsonrpc"`, `:`, `"2.0"`, `,`, `"method"`, `:`)
	s.words(`"`+method+`"`, `,`, `"params"`, `:`, `{`, `"call"`, `:`)
	p.Call = s.number()
	s.words(`,`)
	if bytes.HasPrefix(s.rest, []byte(`"raw"`)) {
		s.words(`"raw"`, `:`)
		p.Raw = s.number()
	} else {
		s.words(`"data"`, `:`)
		p.Data = s.base64()
	}
	if s.ok && bytes.HasPrefix(s.rest, []byte(",")) {
		s.words(`,`, `"eof"`, `:`)
		if p.EOF = bytes.HasPrefix(bytes.TrimLeft(s.rest, " "), []byte("true")); p.EOF {
			s.words(`true`)
		} else {
			s.words(`false`)
		}
	}
	s.words(`}`, `}`)
	return p, s.ok && len(s.rest) == 0
}

// scanner takes tokens off a line until one is not what was expected.
type scanner struct {
	rest []byte
	ok   bool
}

// words takes the tokens, each after any spaces.
func (s *scanner) words(tokens ...string) {
	for _, t := range tokens {
		s.rest = bytes.TrimLeft(s.rest, " ")
		if !bytes.HasPrefix(s.rest, []byte(t)) {
			s.ok, s.rest = false, nil
			return
		}
		s.rest = s.rest[len(t):]
	}
}

// number takes a whole number above 0.
func (s *scanner) number() (n int64) {
	s.rest = bytes.TrimLeft(s.rest, " ")
	i := 0
	for ; i < len(s.rest) && i < 18 && s.rest[i] >= '0' && s.rest[i] <= '9'; i++ {
		n = n*10 + int64(s.rest[i]-'0')
	}
	s.ok = s.ok && i > 0 && s.rest[0] != '0'
	s.rest = s.rest[i:]
	return n
}

// base64 takes a string of it.
func (s *scanner) base64() []byte {
	s.rest = bytes.TrimLeft(s.rest, " ")
	end := -1
	if len(s.rest) > 0 && s.rest[0] == '"' {
		end = bytes.IndexByte(s.rest[1:], '"')
	}
	if end < 0 {
		s.ok, s.rest = false, nil
		return nil
	}
	text := s.rest[1 : 1+end]
	data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Decode(data, text)
	s.ok = s.ok && err == nil
	s.rest = s.rest[end+2:]
	return data[:n]
}
