package verify

import (
	"context"
	"fmt"
	"image"
	"slices"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/desktop"
)

// browser checks that the Chromium that agent-browser starts is the one that Hermes looks for, and that its own sandbox is on although a
// caller asks for none.
func (s *sandbox) browser(ctx context.Context, r *Report) error {
	browsers, _ := lookup(s.environ, "PLAYWRIGHT_BROWSERS_PATH")
	browsers = or(browsers, "/opt/playwright")
	found, _, err := s.run(ctx, contract.Request{Argv: []string{"find", browsers, "-path", "*/chromium-*/chrome-linux*/chrome"}})
	if err != nil {
		return err
	}
	chrome := strings.Fields(found)
	usable := len(chrome) > 0 && strings.HasPrefix(chrome[0], browsers)
	if usable {
		_, status, err := s.run(ctx, contract.Request{Argv: []string{chrome[0], "--version"}})
		if err != nil {
			return err
		}
		usable = status == 0
	}
	r.expect(usable, "Chromium", or(found, "none"), fmt.Sprintf("one that starts is at %s/chromium-*/chrome-linux/chrome", browsers))
	if started, set := lookup(s.environ, "AGENT_BROWSER_EXECUTABLE_PATH"); set {
		r.expect(slices.Contains(chrome, started), "agent-browser's Chromium", started, "the one that Hermes looks for, so that both have one profile")
	}
	return s.browserSandbox(ctx, r)
}

// browserSandbox asks Chromium itself. Its --dump-dom shows nothing of this page.
func (s *sandbox) browserSandbox(ctx context.Context, r *Report) error {
	const want = `chrome://sandbox says "adequately sandboxed", also when --no-sandbox is passed; where it does not, see whether dockerbox doctor speaks of user namespaces`
	ask := func(words ...string) (string, int, error) {
		return s.run(ctx, contract.Request{
			Argv: append([]string{"agent-browser", "--session", "dockerbox-verify"}, words...),
			Env:  map[string]string{"AGENT_BROWSER_ARGS": "--no-sandbox,--disable-dev-shm-usage"},
		})
	}
	said, status, err := ask("open", "chrome://sandbox")
	if err == nil && status == 0 {
		said, status, err = ask("eval", "document.body.innerText")
	}
	if err != nil {
		return err
	}
	sandboxed := status == 0 && strings.Contains(said, "You are adequately sandboxed")
	if status == 0 {
		said = strings.ReplaceAll(said, `\n`, " ")
		said = strings.Trim(said[max(0, strings.LastIndex(said, "You are")):], `"`)
	} else {
		said = ended(said, status)
	}
	r.expect(sandboxed, "Chromium's sandbox", said, want)
	_, _, err = ask("close")
	return err
}

// screen starts it and looks at what is on it. What keeps it from starting is the image's fault, unless somebody ended the wait; a daemon that
// is gone shows at the next check.
func (s *sandbox) screen(ctx context.Context, r *Report) error {
	const want = "it starts, with panel and desktop on it"
	st, err := desktop.Start(ctx, s.env, desktop.Options{})
	if err != nil {
		r.expect(false, "screen", reason(err), want)
		return ctx.Err()
	}
	s.display = st.Env
	seen, err := desktop.Look(ctx, s.env)
	if err != nil {
		return err
	}
	var classes []string
	for _, w := range seen.Windows {
		classes = append(classes, strings.ToLower(w.Class))
	}
	mapped := slices.Contains(classes, "xfdesktop") && slices.Contains(classes, "xfce4-panel")
	r.expect(mapped, "screen", "on it are: "+strings.Join(classes, ", "), want)
	picture, err := desktop.Screenshot(ctx, s.env)
	if err != nil {
		r.expect(false, "picture of the screen", reason(err), "it can be taken")
		return ctx.Err()
	}
	r.expect(!plain(picture), "picture of the screen", "one colour all over", "it shows something")
	return nil
}

// plain reports whether a picture is of one colour.
func plain(p *image.RGBA) bool {
	first := p.RGBAAt(p.Rect.Min.X, p.Rect.Min.Y)
	for y := p.Rect.Min.Y; y < p.Rect.Max.Y; y++ {
		for x := p.Rect.Min.X; x < p.Rect.Max.X; x++ {
			if p.RGBAAt(x, y) != first {
				return false
			}
		}
	}
	return true
}
