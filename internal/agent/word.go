//go:build linux

package agent

import "strings"

// quote makes s one word for bash, whatever bytes it holds.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// escapes of $'…' that stand for one byte.
var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'a': 7, 'b': 8, 'f': 12, 'v': 11, 'e': 27, 'E': 27}

// unquote reads one word the way bash writes it in declare -p and alias -p: bare, "…", '…', $'…' and any of them joined. It stops
// before the first unquoted byte of stop. ok is false when a quote is not closed.
func unquote(s, stop string) (word, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); {
		var n int
		switch {
		case strings.IndexByte(stop, s[i]) >= 0:
			return b.String(), s[i:], true
		case s[i] == '"':
			n = unquoteDouble(&b, s[i+1:])
		case s[i] == '\'':
			if n = strings.IndexByte(s[i+1:], '\'') + 1; n > 0 {
				b.WriteString(s[i+1 : i+n])
			}
		case strings.HasPrefix(s[i:], "$'"):
			i++
			n = unquoteANSI(&b, s[i+1:])
		case s[i] == '\\' && i+1 < len(s):
			b.WriteByte(s[i+1])
			n = 1
		default:
			b.WriteByte(s[i])
			i++
			continue
		}
		if n <= 0 {
			return "", s, false
		}
		i += n + 1
	}
	return b.String(), "", true
}

// unquoteDouble reads behind a double quote and returns how many bytes it took with the closing one, 0 when there is none.
func unquoteDouble(b *strings.Builder, s string) int {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return i + 1
		case s[i] == '\\' && i+1 < len(s) && strings.IndexByte("\"$`\\", s[i+1]) >= 0:
			i++
			b.WriteByte(s[i])
		default:
			b.WriteByte(s[i])
		}
	}
	return 0
}

// unquoteANSI reads behind $' and returns how many bytes it took with the closing quote, 0 when there is none.
func unquoteANSI(b *strings.Builder, s string) int {
	for i := 0; i < len(s); i++ {
		if s[i] == '\'' {
			return i + 1
		}
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if c, known := escapes[s[i]]; known {
			b.WriteByte(c)
			continue
		}
		const digits = 3
		octal, n := 0, 0
		for ; n < digits && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7'; n++ {
			octal = octal*8 + int(s[i+n]-'0')
		}
		if n == 0 {
			b.WriteByte(s[i]) // \\ \' \" \?
			continue
		}
		b.WriteByte(byte(octal))
		i += n - 1
	}
	return 0
}
