package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

const printConfig = "print-config"

// mcpClient is a program that starts MCP servers, by what its configuration looks like and where that is.
type mcpClient struct {
	name string
	// key is what holds the servers, typed says that each has a type.
	key   string
	typed bool
	yaml  bool
	where string
}

var mcpClients = []mcpClient{
	{name: "claude", key: "mcpServers", where: "for Claude Code it goes to .mcp.json in the project; for Claude Desktop to claude_desktop_config.json, " +
		"below ~/Library/Application Support/Claude (macOS), %APPDATA%\\Claude (Windows) or ~/.config/Claude (Linux)"},
	{name: "cursor", key: "mcpServers", where: "it goes to ~/.cursor/mcp.json, or to .cursor/mcp.json in a project"},
	{name: "vscode", key: "servers", typed: true, where: "it goes to .vscode/mcp.json in the workspace, or to what the command \"MCP: Open User Configuration\" opens"},
	{name: "hermes", key: "mcp_servers", yaml: true, where: "it goes to config.yaml in the home of Hermes, ~/.hermes by default"},
}

func mcpClientNames() []string {
	names := make([]string, len(mcpClients))
	for i, c := range mcpClients {
		names[i] = c.name
	}
	return names
}

// mcpServer is how clients write down what to start.
type mcpServer struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env,omitempty"`
}

// printMCPConfig prints what makes a client start dockerbox mcp for a sandbox.
func printMCPConfig(std streams, open opener, client, name string) error {
	for _, c := range mcpClients {
		if c.name != client {
			continue
		}
		if !isAddress(name) {
			return &usageError{problem: fmt.Sprintf("%.60q is no name that dockerbox ps could show", name)}
		}
		server, err := mcpServerOf(open, name)
		if err != nil {
			return err
		}
		text, err := c.snippet(serverName(name), server)
		if err != nil {
			return err
		}
		note(std.err, c.where)
		return say(std.out, "%s", text)
	}
	return &usageError{problem: fmt.Sprintf("--%s: %.40q must be one of %s", printConfig, client, strings.Join(mcpClientNames(), ", "))}
}

// isAddress reports whether a sandbox may be called so.
func isAddress(name string) bool {
	profile, rest, ok := strings.Cut(name, "/")
	if !ok {
		return contract.ValidName(name)
	}
	return contract.ValidName(profile) && contract.ValidName(rest)
}

// mcpServerOf is the command line for a client that has nothing of this shell's environment: the daemon is named in it, and what no flag says
// goes along as variables.
func mcpServerOf(open opener, name string) (mcpServer, error) {
	p, err := open()
	if err != nil {
		return mcpServer{}, err
	}
	self, err := p.Self()
	if err = errors.Join(err, p.Close()); err != nil {
		return mcpServer{}, err
	}
	s := mcpServer{Command: self[0], Args: append(self[1:], "mcp", name)}
	for _, variable := range []string{"DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"} {
		if value := os.Getenv(variable); value != "" {
			if s.Env == nil {
				s.Env = map[string]string{}
			}
			s.Env[variable] = value
		}
	}
	return s, nil
}

// serverName is what a client calls the server: it becomes a part of the names of tools, which are letters, digits, - and _.
func serverName(sandbox string) string {
	return "dockerbox-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, sandbox)
}

// snippet is a whole configuration with that one server. A string of JSON is one of YAML too.
func (c mcpClient) snippet(name string, s mcpServer) (string, error) {
	if c.typed {
		s.Type = "stdio"
	}
	if !c.yaml {
		return encoded(map[string]map[string]mcpServer{c.key: {name: s}}, "  ")
	}
	text := c.key + ":\n  " + name + ":\n"
	line := func(indent, key string, value any) error {
		scalar, err := encoded(value, "")
		text += indent + key + ": " + scalar
		return err
	}
	if err := errors.Join(line("    ", "command", s.Command), line("    ", "args", s.Args)); err != nil {
		return "", err
	}
	if len(s.Env) > 0 {
		text += "    env:\n"
	}
	for _, variable := range slices.Sorted(maps.Keys(s.Env)) {
		if err := line("      ", variable, s.Env[variable]); err != nil {
			return "", err
		}
	}
	return text, nil
}

func encoded(v any, indent string) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(v)
	return b.String(), err
}
