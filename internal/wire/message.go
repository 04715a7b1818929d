package wire

import (
	"encoding/json"
	"fmt"
)

// Names in the two hellos.
const (
	AgentName = "dockerbox-agent"
	HostName  = "dockerbox"
)

// FeatureTerminal is in the hello of an agent that knows Run.Terminal and Resize frames. One that does not would run the command on pipes.
const FeatureTerminal = "terminal"

// FeatureDial is in the hello of an agent that knows Dial. One that does not would never answer.
const FeatureDial = "dial"

// Hello is the first frame of each side; the agent speaks first. Unknown fields are ignored, so features can be added.
type Hello struct {
	Name     string   `json:"name"`
	Protocol int      `json:"protocol"`
	Version  string   `json:"version"`
	Features []string `json:"features,omitempty"`
	// Boot is the agent's own random id: another value than before means its state and jobs are gone. Empty from the host.
	Boot string `json:"boot,omitempty"`
	// UID is the account the agent itself runs as. Only 0 can switch users.
	UID int `json:"uid"`
	// Looks, from the host, says that this connection only looks: it counts neither as somebody who is connected nor as a use of the sandbox.
	Looks bool `json:"looks,omitempty"`
	// Error, when set, is a sentence that says why the agent cannot serve; nothing follows it.
	Error string `json:"error,omitempty"`
}

// Run starts a command. Byte fields need not be UTF-8; JSON carries them as base64.
type Run struct {
	// User is a name or number with an optional ":group"; empty is the account the agent was started for.
	User string `json:"user,omitempty"`
	// Shell is the text for bash with lasting state; Argv the exact words. Exactly one is set.
	Shell []byte   `json:"shell,omitempty"`
	Argv  [][]byte `json:"argv,omitempty"`
	// Dir is where to run: absolute, "~" or "~/…"; empty is the lasting directory (Shell) or the home (Argv).
	Dir []byte `json:"dir,omitempty"`
	// Fallback is where to run, without a note, when Dir cannot be entered; empty means that is a failure.
	Fallback []byte `json:"fallback,omitempty"`
	// Env is for this command alone and never enters lasting state.
	Env map[string][]byte `json:"env,omitempty"`
	// Transient names variables that never enter lasting state: a name, or the beginning of one with "*" behind it.
	Transient []string `json:"transient,omitempty"`
	// Stdin announces Input frames and an End; otherwise standard input is /dev/null.
	Stdin bool `json:"stdin,omitempty"`
	// Split keeps stderr apart, in Errors frames.
	Split bool `json:"split,omitempty"`
	// TimeoutMS is the agent's own deadline in milliseconds, for a host that died; 0 is none.
	TimeoutMS int64 `json:"timeout_ms,omitempty"`
	// Terminal, when set, gives Argv a pseudo-terminal of this size as its controlling terminal, in place of pipes: what it shows comes as
	// Output frames, what is typed goes as Input frames, and Resize frames may follow.
	Terminal *Size `json:"terminal,omitempty"`
}

// Size is that of a terminal in characters. 0 is unknown.
type Size struct {
	Rows uint16 `json:"rows"`
	Cols uint16 `json:"cols"`
}

// Dial opens a connection inside the sandbox. An empty Answer says that it stands; an Exit in its place has [ReasonRefused] when there is
// nobody to connect to. Output frames carry what comes from there and End says that no more will; Input frames carry what goes there and
// End closes that half. The Exit follows when both halves are at their end, or with [ReasonReset] when the other side has broken off. Kill
// gives up what comes from there; what was sent is still delivered if its End was sent too, else the other side sees it broken off.
type Dial struct {
	// Network is "tcp". Address is "127.0.0.1:PORT"; a listener on [::1] alone is found too.
	Network string `json:"network"`
	Address string `json:"address"`
}

// Reasons in Exit for a command that never started, and for how a Dial ended. Empty means it started, or ended as it should.
const (
	ReasonDirectory     = "bad-directory"
	ReasonNotExecutable = "not-executable"
	ReasonNotFound      = "not-found"
	ReasonUser          = "no-such-user"
	ReasonAccount       = "another-account" // it exists, and this agent cannot become it
	ReasonRefused       = "refused"         // a Dial could not connect; Text says why
	ReasonReset         = "reset"           // a Dial's connection stood, and the other side broke it off; Text says how
	ReasonInternal      = "internal"        // the agent could not do its part; Text says what
)

// Exit ends a command.
type Exit struct {
	// Code is the exit status when Signal is 0 and Reason empty. Signal is the number that ended it.
	Code   int `json:"code"`
	Signal int `json:"signal,omitempty"`
	// Reason and Text, when set, say that the command never started and why.
	Reason string `json:"reason,omitempty"`
	Text   string `json:"text,omitempty"`
	// Cwd is the directory a Shell command left behind; empty when it reported none.
	Cwd []byte `json:"cwd,omitempty"`
	// Killed is true when the agent ended the tree, for a Kill frame or its own deadline.
	Killed bool `json:"killed,omitempty"`
}

// AttachUID is the account and the group of attaches to the agent that is a hardened sandbox's first process. Nobody else in a sandbox has
// this number, and nobody without capabilities can take it on; it fits below 65536, which is all that a daemon with user namespaces has.
const AttachUID = 65531

// Operations of a Query.
const (
	OpAccount = "account" // resolve User; Answer.Account
	OpPing    = "ping"    // an empty Answer
	OpJobs    = "jobs"    // count what runs on somebody's behalf; Answer.Jobs and Example
	OpEnd     = "end"     // ask everything in the container to end and wait at most LimitMS; Answer as for OpJobs
	// OpRetire is OpJobs, and if nobody is connected but those who look, nothing runs and nothing was used for LimitMS, the agent takes no
	// connection for the next seconds, in which the host stops the container: Answer.Retired.
	OpRetire = "retire"
	OpUsage  = "usage" // what all of the container uses, as the agent sees it; Answer.Usage
)

// Query asks the agent something that is not a command.
type Query struct {
	Op   string `json:"op"`
	User string `json:"user,omitempty"`
	// LimitMS bounds an OpEnd, in milliseconds; 0 asks and does not wait. For an OpRetire it is how long nothing may have been used.
	LimitMS int64 `json:"limit_ms,omitempty"`
}

// Answer replies to a Query of the same ID. Error is a sentence, empty when it worked.
type Answer struct {
	Account *Account `json:"account,omitempty"`
	// Jobs is how many processes run on somebody's behalf, Example the name of one: all but the agent's own, shells that wait for a command,
	// what a login left running, and the dead.
	Jobs    int    `json:"jobs,omitempty"`
	Example string `json:"example,omitempty"`
	// Screen is how many of the Jobs are an empty desktop: a display server and what comes up with it.
	Screen int `json:"screen,omitempty"`
	// Use comes with the answers to OpJobs and OpRetire, nil from agents that do not know it.
	Use     *Use   `json:"use,omitempty"`
	Retired bool   `json:"retired,omitempty"`
	Usage   *Usage `json:"usage,omitempty"`
	Error   string `json:"error,omitempty"`
	// Reason is one of the Reason constants when Error has a kind the host acts on.
	Reason string `json:"reason,omitempty"`
}

// Use is when a sandbox was last used through its agent: a command began or ended, or a host that does more than look came or went.
type Use struct {
	// IdleMS is how long ago that was, in milliseconds, and Clients how many such hosts are connected now.
	IdleMS  int64 `json:"idle_ms"`
	Clients int   `json:"clients,omitempty"`
}

// Usage is what a container used: processor time in nanoseconds, and bytes, since it was started; but memory, of which Inactive bytes are files that
// the kernel can give back, and processes are those of this moment. What the agent cannot see is 0.
type Usage struct {
	CPUNanos uint64 `json:"cpu_ns"`
	Memory   uint64 `json:"memory"`
	Inactive uint64 `json:"inactive"`
	PIDs     uint64 `json:"pids"`
	Received uint64 `json:"received"`
	Sent     uint64 `json:"sent"`
	Read     uint64 `json:"read"`
	Written  uint64 `json:"written"`
}

// Account is a user of the sandbox as its own passwd answers. A number without an entry has a home the agent made for it.
type Account struct {
	Name string `json:"name"`
	UID  int    `json:"uid"`
	GID  int    `json:"gid"`
	Home string `json:"home"`
	// Temp is a directory of the sandbox in which any account may make files; empty when the agent does not say.
	Temp string `json:"temp,omitempty"`
	// Confinement is what holds for the agent and all it starts; nil from agents that do not know it.
	Confinement *Confinement `json:"confinement,omitempty"`
}

// Confinement is what the kernel keeps a sandbox's processes from, by its own word.
type Confinement struct {
	// NoNewPrivileges is set when programs give nobody more rights, Filtered when system calls are filtered, ReadOnly when the root directory
	// cannot be written to.
	NoNewPrivileges bool `json:"no_new_privileges"`
	Filtered        bool `json:"filtered"`
	ReadOnly        bool `json:"read_only"`
	// Capabilities are those that a process could have at most, as the kernel's bits.
	Capabilities uint64 `json:"capabilities"`
}

// Message is any JSON payload.
type Message interface {
	Hello | Run | Dial | Exit | Query | Answer | Size
}

// Encode builds a frame with m as its payload.
func Encode[M Message](t Type, id uint32, m M) Frame {
	payload, err := json.Marshal(m)
	if err != nil { // no Message holds a value that JSON cannot carry
		panic(err)
	}
	return Frame{Type: t, ID: id, Payload: payload}
}

// Decode reads f's payload as M.
func Decode[M Message](f Frame) (M, error) {
	var m M
	if err := json.Unmarshal(f.Payload, &m); err != nil {
		return m, fmt.Errorf("%c frame: %w", f.Type, err)
	}
	return m, nil
}
