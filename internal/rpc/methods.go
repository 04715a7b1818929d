package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// method does one request and returns its result as JSON.
type method func(c *conn, ctx context.Context, k *call, raw json.RawMessage) ([]byte, error)

var methods = map[string]method{
	methodProbe:      (*conn).probe,
	methodCreate:     (*conn).create,
	methodValidate:   (*conn).validate,
	methodExecute:    (*conn).execute,
	methodExecPrefix: (*conn).execPrefix,
	methodFetch:      (*conn).fetch,
	methodDeliver:    (*conn).deliver,
	methodRealpath:   (*conn).realpath,
	methodCleanup:    (*conn).cleanup,
	methodDoctor:     (*conn).doctor,
	methodReap:       (*conn).reap,
}

func (c *conn) probe(ctx context.Context, _ *call, _ json.RawMessage) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return mustMarshal(c.server.Provider.Probe(ctx)), nil
}

func (c *conn) create(ctx context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	var p createParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	cfg, err := c.server.config(p.Config)
	if err != nil {
		return nil, err
	}
	env, err := c.server.Provider.CreateEnvironment(ctx, cfg, p.Cwd)
	var faults contract.Faults
	switch {
	case errors.As(err, &faults):
		return nil, byJSONKey(faults)
	case err != nil:
		return nil, err
	}
	handle, ok := c.adopt(env)
	if !ok { // Serve gave up waiting for this call and nobody else will let go
		return nil, errors.Join(errEnding, env.Cleanup(context.WithoutCancel(ctx), false))
	}
	info := env.Info()
	warnings := info.Warnings
	if warnings == nil {
		warnings = []string{}
	}
	return mustMarshal(createResult{
		Env: handle, Name: info.Name, ContainerID: info.ContainerID, Image: info.Image, User: info.User, Home: info.Home,
		Cwd: info.Cwd, TempDir: info.TempDir, Created: info.Created, ForwardEnv: info.ForwardEnv, Mounts: info.Mounts, Warnings: warnings,
	}), nil
}

// validate looks at a config as create does and makes nothing.
func (c *conn) validate(_ context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	var p validateParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	if _, err := c.server.config(p.Config); err != nil {
		return nil, err
	}
	return mustMarshal(nothing{}), nil
}

// config reads the config of a request; the error is the Faults of it.
func (s *Server) config(raw json.RawMessage) (contract.Config, error) {
	check := contract.Config.Validate
	if c, ok := s.Provider.(checker); ok {
		check = c.Check
	}
	cfg, faults := decodeConfig(raw, s.Version, check)
	if faults != nil {
		return cfg, faults
	}
	return cfg, nil
}

// adopt gives env a handle, unless the handles were let go already.
func (c *conn) adopt(env contract.Environment) (handle string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.envs == nil {
		return "", false
	}
	c.lastEnv++
	handle = fmt.Sprintf("e%d", c.lastEnv)
	c.envs[handle] = env
	return handle, true
}

// environment finds a living handle.
func (c *conn) environment(handle string) (contract.Environment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if env, ok := c.envs[handle]; ok {
		return env, nil
	}
	return nil, fault("env", fmt.Sprintf("%.64q is not a living handle of this connection", handle))
}

func (c *conn) execPrefix(ctx context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	var p execPrefixParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	env, err := c.environment(p.Env)
	if err != nil {
		return nil, err
	}
	if p.User != "" && !contract.ValidUser(p.User) {
		return nil, faultUser(p.User)
	}
	argv, err := env.ExecPrefix(ctx, p.User, p.Interactive == nil || *p.Interactive)
	if err != nil {
		return nil, err
	}
	return mustMarshal(execPrefixResult{argv}), nil
}

func (c *conn) realpath(ctx context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	var p realpathParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	env, err := c.environment(p.Env)
	if err != nil {
		return nil, err
	}
	path := textOr(p.Path, p.PathB64)
	if path == "" {
		return nil, fault("path", "must not be empty")
	}
	real, err := env.Realpath(ctx, path)
	if err != nil {
		return nil, err
	}
	return mustMarshal(realpathResult{real, bytesUnlessText(real)}), nil
}

func (c *conn) cleanup(ctx context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	var p cleanupParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	// A handle that is gone, or never was, has nothing left to clean.
	if env, err := c.environment(p.Env); err == nil {
		if err := env.Cleanup(ctx, p.Remove); err != nil {
			return nil, err
		}
		c.mu.Lock()
		delete(c.envs, p.Env)
		c.mu.Unlock()
	}
	return mustMarshal(nothing{}), nil
}

// textOr returns raw when it was given, text otherwise.
func textOr(text string, raw []byte) string {
	if raw != nil {
		return string(raw)
	}
	return text
}

// bytesUnlessText returns s for a _b64 field: only what JSON text cannot carry needs one.
func bytesUnlessText(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}

func faultUser(user string) contract.Faults {
	return fault("user", fmt.Sprintf("%.64q must be a name, or a number up to 2147483647, optionally followed by \":\" and a group", user))
}
