package environment

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func TestCaptureKeepsHeadAndTail(t *testing.T) {
	for _, tc := range []struct {
		limit int
		in    []string
		want  string
	}{
		{0, []string{"all ", "of it"}, "all of it"},
		{10, []string{"0123456789"}, "0123456789"},
		{10, []string{"01234", "56789", "a"}, "0123\n[... 1 bytes left out ...]\n56789a"},
		{10, []string{strings.Repeat("x", 1000) + "END"}, "xxxx\n[... 993 bytes left out ...]\nxxxEND"},
		{1, []string{"abc"}, "\n[... 2 bytes left out ...]\nc"},
	} {
		c := capture{limit: tc.limit}
		for _, s := range tc.in {
			c.write([]byte(s))
		}
		if got := string(c.bytes()); got != tc.want {
			t.Errorf("limit %d, %q: %q, want %q", tc.limit, tc.in, got, tc.want)
		}
	}
}

// However the input is cut, a capture holds what cutting the whole input at once would.
func FuzzCapture(f *testing.F) {
	f.Add([]byte("hello world, this is output"), 10, 3)
	f.Add([]byte(""), 0, 1)
	f.Fuzz(func(t *testing.T, in []byte, limit, cut int) {
		if limit < 0 || limit > 1<<16 || cut < 1 || cut > 1<<16 {
			return
		}
		c := capture{limit: limit}
		for rest := in; len(rest) > 0; {
			n := min(cut, len(rest))
			c.write(rest[:n])
			rest = rest[n:]
		}
		want := in
		if limit > 0 && len(in) > limit {
			head := limit * 2 / 5
			left := len(in) - limit
			want = fmt.Appendf(bytes.Clone(in[:head]), "\n[... %d bytes left out ...]\n", left)
			want = append(want, in[head+left:]...)
		}
		if got := c.bytes(); !bytes.Equal(got, want) {
			t.Fatalf("limit %d cut %d: %q, want %q", limit, cut, got, want)
		}
	})
}
