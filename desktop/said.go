package desktop

import (
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

const (
	// scriptLimit bounds what only looks or ends something.
	scriptLimit = 20 * time.Second
	// maxSaid bounds what is listened to, in bytes.
	maxSaid = 256 << 10
	// maxWindows bounds what of it is kept, and maxTitle a text that people are shown, in bytes.
	maxWindows = 200
	maxTitle   = 300
)

// said are the records of a script.
type said []struct{ name, value string }

func (s said) first(name string) string {
	for _, r := range s {
		if r.name == name {
			return r.value
		}
	}
	return ""
}

// run executes a script as the screen's account. input is its standard input.
func (s screen) run(ctx context.Context, script, input string, args ...string) (said, int, error) {
	limit := scriptLimit
	if script == startScript {
		limit = startLimit
	}
	r, err := s.env.Execute(ctx, contract.Request{
		Argv:  append([]string{"bash", "-c", script, "dockerbox-desktop", s.base}, args...),
		Stdin: strings.NewReader(input), User: s.account, Timeout: limit, MaxOutput: maxSaid,
	})
	if err != nil {
		return nil, 0, err
	}
	var records said
	rest := ""
	for record := range strings.SplitSeq(string(r.Output), "\x00") {
		if name, value, ok := strings.Cut(record, "="); ok && isName(name) {
			records = append(records, struct{ name, value string }{name, value})
		} else {
			rest += record
		}
	}
	if r.ExitCode != 0 && records.first("fault") == "" { // bash itself, or the agent in its place
		records = append(records, struct{ name, value string }{"fault", strings.TrimSpace(rest)})
	}
	return records, r.ExitCode, nil
}

var isName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString

// published are the variables that are taken over from a screen.
var published = map[string]bool{
	"DISPLAY": true, "XAUTHORITY": true, "DBUS_SESSION_BUS_ADDRESS": true,
	"XDG_CONFIG_HOME": true, "XDG_CACHE_HOME": true, "XDG_DATA_HOME": true, "XDG_RUNTIME_DIR": true,
}

// status makes sense of a report. What makes none is an error: programs would be sent to a screen that is not there.
func (s screen) status(all said) (Status, error) {
	if len(all) == 0 {
		return Status{}, nil
	}
	st := Status{Running: true, Account: s.account, Profile: all.first("profile"), Socket: all.first("socket"), Env: map[string]string{}}
	for _, r := range all {
		switch r.name {
		case "env":
			if name, value, ok := strings.Cut(r.value, "="); ok && published[name] && len(value) < maxSaid/64 {
				st.Env[name] = value
			}
		case "window":
			class, title, _ := strings.Cut(r.value, "\t")
			if len(st.Windows) < maxWindows {
				st.Windows = append(st.Windows, Window{Class: property(class), Title: property(title)})
			}
		}
	}
	st.Display = st.Env["DISPLAY"]
	st.Size, _ = parseSize(all.first("size"), ",")
	if since, err := strconv.ParseInt(all.first("since"), 10, 64); err == nil {
		st.Since = time.Unix(since, 0)
	}
	if !isProfile(st.Profile) || st.Socket != s.base+"/"+st.Profile+"/rfb.sock" || !isDisplay(st.Display) {
		return Status{}, &contract.BackendError{
			Reason: "the screen in sandbox \"" + clean(s.env.Info().Name) + "\" describes itself in a way that makes no sense",
			Hint:   "end it with dockerbox desktop stop, and start it again",
		}
	}
	return st, nil
}

var isDisplay = regexp.MustCompile(`^:[0-9]{1,5}$`).MatchString

// property is the last text in what xprop prints of one: "xfdesktop", "Xfdesktop" is a Xfdesktop.
func property(printed string) string {
	texts := quoted.FindAllString(printed, -1)
	if len(texts) == 0 {
		return ""
	}
	text := strings.Trim(texts[len(texts)-1], `"`)
	return clean(strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(text))
}

var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// clean makes a text from inside fit to be shown on a terminal, on one line.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) > maxTitle {
		s = strings.ToValidUTF8(s[:maxTitle], "") + "…"
	}
	return strings.TrimSpace(s)
}
