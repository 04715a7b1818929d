package rpc

import (
	"encoding/json"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Protocol is the version both sides name. It grows when an older peer would misunderstand.
const Protocol = 1

// Sizes in bytes that both sides keep to.
const (
	// MaxLine is the longest line a side accepts.
	MaxLine = 96 << 20
	// MaxChunk is the most that one output or stdin notification carries, before base64.
	MaxChunk = 64 << 10
	// MaxRaw is the most that one such notification carries where its bytes follow the line as they are.
	MaxRaw = 256 << 10
	// InputWindow is how much input of one command may be under way without credit.
	InputWindow = 1 << 20
	// MinWindow is the smallest output window a client may ask for.
	MinWindow = 64 << 10
)

// maxWhole bounds the output of a command without a window. It is held several times over while it becomes a line; who wants more
// takes it in pieces.
const maxWhole = 16 << 20

// Methods.
const (
	methodHello      = "hello"
	methodInitialize = "initialize"
	methodProbe      = "probe"
	methodCreate     = "create"
	methodValidate   = "validate"
	methodExecute    = "execute"
	methodExecPrefix = "exec_prefix"
	methodFetch      = "fetch"
	methodRealpath   = "realpath"
	methodCleanup    = "cleanup"
	methodOutput     = "output"
	methodCredit     = "credit"
	methodStdin      = "stdin"
	methodCancel     = "cancel"
	methodWarning    = "warning"
)

// Features a server names in its hello.
const (
	featureExecute    = "execute"
	featureExecPrefix = "exec_prefix"
	featureFetch      = "fetch"
	featureRaw        = "raw"
)

// Causes in a cancel notification.
const (
	causeTimeout   = "timeout"
	causeInterrupt = "interrupt"
)

// envelope is any incoming line. ID stays raw, because what is wrong with it decides the answer.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   *errorObject    `json:"error"`
}

// Requests and results, named for their method.
type (
	helloParams struct {
		Name     string   `json:"name"`
		Protocol int      `json:"protocol"`
		Version  string   `json:"version"`
		Features []string `json:"features"`
		// DefaultCwd is what [contract.Provider.DefaultCwd] answers.
		DefaultCwd string `json:"default_cwd"`
	}
	peer struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	initializeParams struct {
		Protocol int  `json:"protocol"`
		Client   peer `json:"client"`
		// Raw asks for output as bytes behind its line instead of base64.
		Raw bool `json:"raw,omitempty"`
	}
	initializeResult struct {
		Protocol int    `json:"protocol"`
		Version  string `json:"version"`
		// Raw says that output comes so, and that input may.
		Raw bool `json:"raw,omitempty"`
	}
	createParams struct {
		Config json.RawMessage `json:"config,omitempty"` // see decodeConfig
		Cwd    string          `json:"cwd"`
	}
	validateParams struct {
		Config json.RawMessage `json:"config,omitempty"`
	}
	createResult struct {
		Env         string           `json:"env"`
		Name        string           `json:"name"`
		ContainerID string           `json:"container_id"`
		Image       string           `json:"image"`
		User        string           `json:"user"`
		Home        string           `json:"home"`
		Cwd         string           `json:"cwd"`
		TempDir     string           `json:"temp_dir"`
		Created     bool             `json:"created"`
		ForwardEnv  []string         `json:"forward_env,omitempty"`
		Mounts      []contract.Mount `json:"mounts,omitempty"`
		Warnings    []string         `json:"warnings"`
	}
	executeParams struct {
		Env         string            `json:"env"`
		Command     *string           `json:"command,omitempty"`
		CommandB64  []byte            `json:"command_b64,omitempty"`
		Argv        []string          `json:"argv,omitempty"`
		Cwd         string            `json:"cwd,omitempty"`
		CwdB64      []byte            `json:"cwd_b64,omitempty"`
		User        string            `json:"user,omitempty"`
		Environ     map[string]string `json:"environ,omitempty"`
		Transient   []string          `json:"transient,omitempty"`
		TimeoutMS   int64             `json:"timeout_ms,omitempty"`
		Stdin       []byte            `json:"stdin,omitempty"`
		StreamStdin bool              `json:"stream_stdin,omitempty"`
		Window      int64             `json:"window,omitempty"`
		MaxOutput   int64             `json:"max_output,omitempty"`
	}
	executeResult struct {
		ReturnCode int    `json:"returncode"`
		Output     []byte `json:"output"`
		executeRest
	}
	// executeRest is what the usual result has little of: see encodeResult.
	executeRest struct {
		Cwd         string `json:"cwd,omitempty"`
		CwdB64      []byte `json:"cwd_b64,omitempty"`
		TimedOut    bool   `json:"timed_out,omitempty"`
		Interrupted bool   `json:"interrupted,omitempty"`
		Recreated   bool   `json:"environment_recreated,omitempty"`
		ContainerID string `json:"container_id,omitempty"` // only with Recreated: otherwise the client has it already
		Dropped     int64  `json:"dropped,omitempty"`
		DurationMS  int64  `json:"duration_ms"`
	}
	execPrefixParams struct {
		Env         string `json:"env"`
		User        string `json:"user,omitempty"`
		Interactive *bool  `json:"interactive,omitempty"`
	}
	execPrefixResult struct {
		Argv []string `json:"argv"`
	}
	fetchParams struct {
		Env      string `json:"env"`
		Path     string `json:"path,omitempty"`
		PathB64  []byte `json:"path_b64,omitempty"`
		Dest     string `json:"dest"`
		MaxBytes int64  `json:"max_bytes,omitempty"`
	}
	fetchResult struct {
		Bytes int64 `json:"bytes"`
	}
	realpathParams struct {
		Env     string `json:"env"`
		Path    string `json:"path,omitempty"`
		PathB64 []byte `json:"path_b64,omitempty"`
	}
	realpathResult struct {
		Path    string `json:"path"`
		PathB64 []byte `json:"path_b64,omitempty"`
	}
	cleanupParams struct {
		Env    string `json:"env"`
		Remove bool   `json:"remove,omitempty"`
	}
	nothing struct{}
)

// Notifications.
type (
	chunkParams struct {
		Call int64  `json:"call"`
		Data []byte `json:"data"`
		// Raw is how many bytes follow the line in place of Data.
		Raw int64 `json:"raw,omitempty"`
		EOF bool  `json:"eof,omitempty"`
	}
	creditParams struct {
		Call  int64 `json:"call"`
		Bytes int64 `json:"bytes"`
	}
	cancelParams struct {
		Call  int64  `json:"call"`
		Cause string `json:"cause"`
	}
	warningParams struct {
		Text string `json:"text"`
	}
)
