package desktop

import (
	"context"
	"fmt"
	"image"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/environment"
	"github.com/hermes-dockerbox/dockerbox/internal/rfb"
)

// Account is whose the screen is where the image has it, as in Hermes. Elsewhere it is the sandbox's own account's.
const Account = "pn"

// Options shape a screen that is started. The zero value is right.
type Options struct {
	// Profile is the Hermes profile whose screen it is; empty means "default". A screen of another profile that lives is taken all the
	// same.
	Profile string
	// Geometry is the size in pixels, such as 1440x900, which is also what empty means. A screen that lives keeps the size it has.
	Geometry string
}

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

const (
	defaultProfile  = "default"
	defaultGeometry = "1440x900"
)

// startLimit bounds a start. The script gives up before.
const startLimit = 45 * time.Second

// Start takes the sandbox's screen, or starts one, and returns when its desktop and its panel are there to be seen. It may be called
// concurrently, by several processes: one screen results. ctx ends a start half-way; nothing of it goes on then. Errors are
// [*contract.BackendError].
func Start(ctx context.Context, env contract.Environment, o Options) (Status, error) {
	if o.Profile == "" {
		o.Profile = defaultProfile
	}
	if o.Geometry == "" {
		o.Geometry = defaultGeometry
	}
	if err := o.check(); err != nil {
		return Status{}, err
	}
	s, err := locate(ctx, env)
	if err != nil {
		return Status{}, err
	}
	for swept := false; ; swept = true {
		said, status, err := s.run(ctx, startScript, launcherScript, o.Profile, o.Geometry)
		switch {
		case err != nil:
			return Status{}, err
		case status == exitStale && !swept:
			if err := s.housekeep(ctx); err != nil {
				return Status{}, err
			}
		case status != 0:
			return Status{}, s.startError(ctx, status, said, o)
		default:
			return s.status(said)
		}
	}
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
	defer stream.Close()
	conn, err := rfb.Dial(stream)
	var picture *image.RGBA
	if err == nil {
		picture, err = conn.Frame()
	}
	if err != nil {
		return nil, s.streamError(err, stream.Close())
	}
	return picture, nil
}

var (
	isProfile  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`).MatchString
	isGeometry = regexp.MustCompile(`^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$`).MatchString
)

func (o Options) check() error {
	const hint = "a geometry is WIDTHxHEIGHT in pixels, such as 1440x900"
	if !isProfile(o.Profile) {
		return &contract.BackendError{
			Reason: fmt.Sprintf("%.80q is not the name of a Hermes profile", o.Profile),
			Hint:   "a profile has at most 64 letters, digits, \".\", \"_\" and \"-\"",
		}
	}
	if !isGeometry(o.Geometry) {
		return &contract.BackendError{Reason: fmt.Sprintf("%.40q is not the size of a screen", o.Geometry), Hint: hint}
	}
	size, ok := parseSize(o.Geometry, "x")
	const smallest, largest = 200, 1 << 14
	if !ok || min(size.X, size.Y) < smallest || max(size.X, size.Y) > largest || size.X*size.Y > rfb.MaxPixels {
		return &contract.BackendError{
			Reason: fmt.Sprintf("a screen of %s pixels cannot be had: each side has from %d to %d, and all together are at most %d million", o.Geometry, smallest, largest, rfb.MaxPixels>>20),
			Hint:   hint,
		}
	}
	return nil
}

func parseSize(s, between string) (image.Point, bool) {
	width, height, ok := strings.Cut(s, between)
	x, errX := strconv.Atoi(strings.TrimSpace(width))
	y, errY := strconv.Atoi(strings.TrimSpace(height))
	return image.Pt(x, y), ok && errX == nil && errY == nil && x > 0 && y > 0
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
