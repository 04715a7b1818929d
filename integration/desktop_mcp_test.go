//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// mcpClient is an MCP client with `dockerbox mcp` for a server.
type mcpClient struct {
	t       *testing.T
	command *exec.Cmd
	*mcp.ClientSession
}

func newMCPClient(t *testing.T, box string) mcpClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.Command(dockerboxBinary(t), "mcp", box)
	var stderr bytes.Buffer
	command.Stderr = &stderr
	session, err := mcp.NewClient(&mcp.Implementation{Name: "dockerbox-test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	return mcpClient{t, command, session}
}

// call calls a tool that has to work and stores its structured answer in into.
func (c mcpClient) call(into any, tool string, arguments map[string]any) *mcp.CallToolResult {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	r, err := c.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil || r.IsError {
		c.t.Fatalf("%s %v: %v, %+v", tool, arguments, err, r)
	}
	if into != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err == nil {
			err = json.Unmarshal(b, into)
		}
		if err != nil {
			c.t.Fatalf("%s: %v", tool, err)
		}
	}
	return r
}

// mcpWindow is a window as cua-driver lists it.
type mcpWindow struct {
	WindowID int    `json:"window_id"`
	PID      int    `json:"pid"`
	App      string `json:"app_name"`
	Title    string `json:"title"`
}

func (c mcpClient) windows() []mcpWindow {
	c.t.Helper()
	var answer struct{ Windows []mcpWindow }
	c.call(&answer, "list_windows", map[string]any{})
	return answer.Windows
}

// elements counts the elements of a window's tree and returns the picture that comes with it.
func (c mcpClient) elements(w mcpWindow) (n int, picture []byte) {
	c.t.Helper()
	var answer struct {
		Count int `json:"total_element_count"`
	}
	r := c.call(&answer, "get_window_state", map[string]any{"pid": w.PID, "window_id": w.WindowID})
	for _, content := range r.Content {
		if image, ok := content.(*mcp.ImageContent); ok {
			picture = image.Data
		}
	}
	return answer.Count, picture
}

// untilElements asks until the tree has enough of them: a program fills it after its window is there.
func (c mcpClient) untilElements(w mcpWindow) {
	c.t.Helper()
	const enough, patience = 15, 20 * time.Second
	for deadline := time.Now().Add(patience); ; {
		n, picture := c.elements(w)
		if n >= enough {
			p, err := png.Decode(bytes.NewReader(picture))
			if err != nil || p.Bounds().Dx() < 200 {
				c.t.Errorf("the picture of %+v: %v", w, err)
			}
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%+v has %d elements, want %d", w, n, enough)
		}
	}
}

// The environment Hermes's dock gives the programs it starts, which asks for no accessibility tree.
const fromHermesDock = "env NO_AT_BRIDGE=1 GTK_A11Y=none "

func TestMCP(t *testing.T) {
	env := desktopSandbox(t, func(c *contract.Config) { c.Network = "none" })
	f := screenBox{env: env, name: env.Info().Name}
	c := newMCPClient(t, f.name) // starts the screen
	if got := c.InitializeResult().ServerInfo.Name; !strings.Contains(got, "cua") {
		t.Errorf("the server is %q", got)
	}
	tools, err := c.ListTools(t.Context(), nil)
	if err != nil || len(tools.Tools) < 60 {
		t.Fatalf("%+v, %v; want at least 60 tools", tools, err)
	}
	st := f.start(t)
	sh(t, env, `mkdir -p /tmp/www; echo '<title>Served inside</title><h1>Here I am</h1><a href=x>a link</a><button>a button</button>' >/tmp/www/index.html
nohup python3 -m http.server 8123 --bind 127.0.0.1 --directory /tmp/www >/dev/null 2>&1 &`)
	f.background(t, st, fromHermesDock+"xfce4-terminal --disable-server --title by-dock")
	f.background(t, st, "xfce4-terminal --disable-server --title by-hand")
	f.background(t, st, fromHermesDock+"$(echo /opt/playwright/chromium-*/chrome-linux/chrome) --user-data-dir=/home/pn/.hermes/bot-desktop/browser-profile --remote-debugging-port=0 "+
		"--no-first-run --no-default-browser-check --test-type --no-sandbox --disable-dev-shm-usage http://127.0.0.1:8123/")
	f.await(t, st, "xprop -root _NET_CLIENT_LIST | grep -q '0x.*0x.*0x.*0x.*0x'")

	seen := map[string]mcpWindow{}
	for _, w := range c.windows() {
		seen[w.App] = w
		if w.App == "Xfce4-terminal" {
			c.untilElements(w)
		}
		if strings.HasPrefix(w.App, "Chrom") {
			seen["browser"] = w
			c.untilElements(w)
		}
	}
	if seen["browser"].PID == 0 || seen["Xfce4-terminal"].PID == 0 || seen["Xfce4-panel"].PID == 0 {
		t.Fatalf("windows: %+v", seen)
	}
	w := seen["Xfce4-terminal"]
	c.call(nil, "type_text", map[string]any{"pid": w.PID, "window_id": w.WindowID, "text": "echo typed by $LOGNAME >/tmp/typed\n", "delivery_mode": "foreground"})
	f.await(t, st, "[[ -s /tmp/typed ]]")
	wants(t, env, "cat /tmp/typed", "typed by pn\n")

	shown := c.call(nil, "get_desktop_state", map[string]any{})
	pictures := 0
	for _, content := range shown.Content {
		if image, ok := content.(*mcp.ImageContent); ok {
			pictures++
			p, err := png.Decode(bytes.NewReader(image.Data))
			if err != nil {
				t.Fatal(err)
			}
			keepPicture(t, "mcp", p)
		}
	}
	if pictures == 0 {
		t.Errorf("no picture in %+v", shown)
	}
	f.mcpEnds(t, c)
}

// mcpEnds holds the server to its end: with its client, however that goes, while the screen stays.
func (f screenBox) mcpEnds(t *testing.T, c mcpClient) {
	gone := func(how string) {
		t.Helper()
		f.await(t, f.look(t), "! pgrep -x cua-driver >/dev/null")
		if !f.look(t).Running {
			t.Errorf("%s ended the screen too", how)
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("the client closed and the server said %v", err)
	}
	gone("closing")
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		c := newMCPClient(t, f.name)
		sh(t, f.env, "pgrep -x cua-driver")
		if err := c.command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		gone(signal.String())
		_ = c.Close() // it says that the server was killed, which it was
	}
}

// A client gets a sentence instead of silence.
func TestMCPOfAnImageWithoutAScreen(t *testing.T) {
	env := desktopSandbox(t, func(c *contract.Config) { c.Image = "dockerbox/base:trixie" })
	got := cli(t, "mcp", env.Info().Name)
	if got.status != contract.ExitBackend || got.stdout != "" || !strings.Contains(got.stderr, "it lacks Xvnc, ") {
		t.Errorf("%+v", got)
	}
}
