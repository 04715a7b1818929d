package main

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// lookupEnv is os.LookupEnv, as a value so that a test can replace it.
type lookupEnv func(name string) (string, bool)

// variables reads -e and --env-file arguments the way docker does: K=V sets, K alone takes the caller's value and is left out when
// there is none, later ones win, -e wins over files.
func variables(given, files []string, lookup lookupEnv) (map[string]string, error) {
	set := map[string]string{}
	for _, file := range files {
		lines, err := envFile(file)
		if err != nil {
			return nil, err
		}
		for _, line := range lines {
			if err := setVariable(set, line, "--env-file "+file+": ", lookup); err != nil {
				return nil, err
			}
		}
	}
	for _, arg := range given {
		if err := setVariable(set, arg, "", lookup); err != nil {
			return nil, err
		}
	}
	return set, nil
}

// setVariable takes one argument or line; where begins the message about a wrong one.
func setVariable(set map[string]string, arg, where string, lookup lookupEnv) error {
	name, value, ok := strings.Cut(arg, "=")
	if name == "" || strings.ContainsAny(name, " \t") {
		return &usageError{problem: fmt.Sprintf("%s%.60q does not begin with a variable name", where, arg)}
	}
	if !ok {
		if value, ok = lookup(name); !ok {
			return nil
		}
	}
	set[name] = value
	return nil
}

// envFile returns the lines of a file that set something: not the empty ones and not those that begin with #.
func envFile(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, &usageError{problem: fmt.Sprintf("--env-file: %v", err)}
	}
	var lines []string
	scan := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\uFEFF"))))
	scan.Buffer(nil, len(data)+1)
	for scan.Scan() {
		line := strings.TrimLeft(scan.Text(), " \t")
		if line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines, scan.Err()
}

// checkUser refuses what no sandbox could have before anything is started for it.
func checkUser(user string) error {
	if user != "" && !contract.ValidUser(user) {
		return &usageError{problem: fmt.Sprintf("user %.60q must be a name or number, optionally followed by \":\" and a group", user)}
	}
	return nil
}
