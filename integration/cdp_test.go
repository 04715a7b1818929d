//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	stdimage "image"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/remote"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

const (
	cdpPort  = 9222
	pagePort = 8000
)

const cdpPage = `<!doctype html><title>before</title>
<body style="margin:0;background:#204a87;color:white;font:40px sans-serif">
<p id=where style="margin:40px">served inside the sandbox</p>
<button id=go style="margin:40px;font:40px sans-serif" onclick="document.title='clicked';document.body.style.background='#4e9a06'">click</button>
`

// The browser of a sandbox is driven from this machine: nothing is published, and its DevTools listen on the sandbox's loopback alone.
func TestForwardReachesTheBrowsersDevTools(t *testing.T) {
	env := desktopSandbox(t, nil)
	run(t, env, contract.Request{Command: "mkdir -p ~/page; cat >~/page/index.html", Stdin: strings.NewReader(cdpPage)})
	sh(t, env, `nohup python3 -m http.server 8000 --bind 127.0.0.1 --directory ~/page >/tmp/page.log 2>&1 &
nohup chromium --headless=new --user-data-dir=/tmp/cdp --remote-debugging-port=9222 --window-size=1000,600 about:blank >/tmp/cdp.log 2>&1 &`)
	if r := run(t, env, contract.Request{Command: "for port in 8000 9222; do until curl -s -o /tmp/x http://127.0.0.1:$port/; do read -rt 0.05 <> <(:) || :; done; done", Timeout: 2 * patience}); r.ExitCode != 0 {
		t.Fatalf("%s%s", r.Output, sh(t, env, "tail -5 /tmp/page.log /tmp/cdp.log"))
	}
	f := startForward(t, nil, env.Info().Name, cdpPort, pagePort)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ctx, cancelAllocator := remote.NewAllocator(ctx, "http://"+f.local[cdpPort])
	defer cancelAllocator()
	ctx, cancelBrowser := chromedp.NewContext(ctx, chromedp.WithErrorf(t.Logf))
	defer cancelBrowser()
	do := func(did string, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v; forward says %q", did, err, f.stderr())
		}
	}
	do("open the page", chromedp.Do(ctx, chromedp.Navigate("http://127.0.0.1:8000/"))) // where the browser is, not where we are
	before, err := chromedp.Run(ctx, chromedp.Title())
	do("read its title", err)
	text, err := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("#where")))
	do("read its text", err)
	do("click", chromedp.Do(ctx, chromedp.Click(chromedp.CSS("#go"))))
	after, err := chromedp.Run(ctx, chromedp.Title())
	do("read its title again", err)
	shot, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	do("take a picture", err)
	if before != "before" || after != "clicked" || text != "served inside the sandbox" {
		t.Errorf("title %q, text %q, then title %q", before, text, after)
	}
	picture, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	keepPicture(t, "forward-cdp", picture)
	if size := picture.Bounds().Size(); size != (stdimage.Point{X: 1000, Y: 600}) && size.X < 900 {
		t.Errorf("the picture is of %v", size)
	}
	if r, g, b, _ := picture.At(5, 5).RGBA(); r>>8 != 0x4e || g>>8 != 0x9a || b>>8 != 0x06 {
		t.Errorf("the page has the colour %02x%02x%02x, want that after the click", r>>8, g>>8, b>>8)
	}
	if err := chromedp.Cancel(ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if said := f.stderr(); said != "" {
		t.Errorf("forward says %q", said)
	}
}
