package desktop

import (
	"context"
	"fmt"
	"image"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/rfb"
)

// Account is whose the screen is where the image has it, as in Hermes. Elsewhere it is the sandbox's own account's.
const Account = "pn"

// Status describes a screen. Without one that runs all is zero.
type Status struct {
	Running bool
	// Profile is whose screen it is, Account the account its programs run as.
	Profile, Account string
	// Display is the X display, such as ":20".
	Display string
	// Size is in pixels; zero when the screen's window manager does not say.
	Size image.Point
	// Since is when it was started, to the second.
	Since time.Time
	// Socket is the path of its RFB socket in the sandbox.
	Socket string
	// Env are the variables that lead a program to it: DISPLAY, XAUTHORITY, DBUS_SESSION_BUS_ADDRESS and some XDG ones.
	Env map[string]string
	// Windows are those on it, in the order in which they came. Start leaves them out.
	Windows []Window
}

// Window is one on the screen, panel and background included. Title and class are the program's own words.
type Window struct {
	Class string `json:"class"`
	Title string `json:"title"`
}

// Stop ends the screen, if any, with all that runs on it, and removes its files. It reports whether one ran. Errors are
// [*contract.BackendError].
func Stop(ctx context.Context, env contract.Environment) (stopped bool, err error) {
	s, err := locate(ctx, env)
	if err != nil {
		return false, err
	}
	said, status, err := s.run(ctx, stopScript, "", "")
	if err == nil && status != 0 {
		err = s.scriptError("stopped", status, said)
	}
	return said.first("stopped") != "", err
}

// Look says whether a screen runs, and what is on it. Errors are [*contract.BackendError].
func Look(ctx context.Context, env contract.Environment) (Status, error) {
	s, err := locate(ctx, env)
	if err != nil {
		return Status{}, err
	}
	return s.look(ctx, "windows")
}

// Screenshot returns what the screen shows, every pixel opaque. Without a screen that runs it is a [*contract.BackendError], as is
// every other failure.
func Screenshot(ctx context.Context, env contract.Environment) (*image.RGBA, error) {
	s, err := locate(ctx, env)
	if err != nil {
		return nil, err
	}
	status, err := s.look(ctx)
	if err != nil {
		return nil, err
	}
	if !status.Running {
		return nil, s.notRunning()
	}
	stream := Open(ctx, env, status)
	conn, err := rfb.Dial(stream)
	var picture *image.RGBA
	if err == nil {
		picture, err = conn.Frame()
	}
	if road := stream.Close(); err != nil {
		return nil, streamError(env, err, road)
	}
	return picture, nil
}

// screen is where the screen of a sandbox is to be found.
type screen struct {
	env     contract.Environment
	account string
	base    string // directory of all profiles
}

// locate finds out whose the screen is.
func locate(ctx context.Context, env contract.Environment) (screen, error) {
	info := env.Info()
	s := screen{env: env, account: info.User, base: strings.TrimRight(info.TempDir, "/") + "/hermes-bot-desktop"}
	if info.User == Account {
		return s, nil
	}
	r, err := env.Execute(ctx, contract.Request{Argv: []string{"id", "-u", Account}, Timeout: scriptLimit, MaxOutput: maxSaid})
	if err == nil && r.ExitCode == 0 {
		s.account = Account
	}
	return s, err
}

// housekeep lets the agent remove what a dead display server of another account left: root may, if anybody.
func (s screen) housekeep(ctx context.Context) error {
	r, err := s.env.Execute(ctx, contract.Request{
		Argv: []string{environment.AgentPath, "housekeep"}, User: "0", Timeout: scriptLimit, MaxOutput: maxSaid,
	})
	if err == nil && r.ExitCode != 0 {
		err = &contract.BackendError{
			Reason: fmt.Sprintf("what a dead display server left in sandbox %q cannot be removed: %s", s.env.Info().Name, clean(string(r.Output))),
			Hint:   "dockerbox up --recreate makes the sandbox anew and keeps its home",
		}
	}
	return err
}

func (s screen) look(ctx context.Context, what ...string) (Status, error) {
	said, status, err := s.run(ctx, statusScript, "", append([]string{""}, what...)...)
	if err != nil {
		return Status{}, err
	}
	if status != 0 {
		return Status{}, s.scriptError("looked at", status, said)
	}
	return s.status(said)
}
