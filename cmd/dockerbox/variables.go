package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
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
			if problem := setVariable(set, line, lookup); problem != "" {
				return nil, contract.Faults{{Key: "env-file", Problem: "in " + file + " " + problem}}
			}
		}
	}
	for _, arg := range given {
		if problem := setVariable(set, arg, lookup); problem != "" {
			return nil, contract.Faults{{Key: "env", Problem: problem}}
		}
	}
	return set, nil
}

// setVariable takes one argument or line and says what is wrong with it.
func setVariable(set map[string]string, arg string, lookup lookupEnv) (problem string) {
	name, value, ok := strings.Cut(arg, "=")
	if name == "" || strings.ContainsAny(name, " \t") {
		return fmt.Sprintf("%.60q does not begin with a variable name", arg)
	}
	if !ok {
		if value, ok = lookup(name); !ok {
			return ""
		}
	}
	set[name] = value
	return ""
}

// envFile returns the lines of a file that set something: not the empty ones and not those that begin with #.
func envFile(path string) ([]string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, contract.Faults{{Key: "env-file", Problem: fmt.Sprintf("%s cannot be read (%s)", path, cause(err))}}
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

// cause is why a file could not be used, without Go's word for the system call and the path, which the caller has said already.
func cause(err error) string {
	var (
		file *fs.PathError
		link *os.LinkError
	)
	for { // one may hold another
		switch {
		case errors.As(err, &file):
			err = file.Err
		case errors.As(err, &link):
			err = link.Err
		default:
			return err.Error()
		}
	}
}

// checkUser refuses what no sandbox could have before anything is started for it.
func checkUser(user string) error {
	if user != "" && !contract.ValidUser(user) {
		return &usageError{problem: fmt.Sprintf("user %.60q must be a name, or a number up to 2147483647, optionally followed by \":\" and a group", user)}
	}
	return nil
}

// forward adds the variables a sandbox wants from whoever runs a command, as far as the caller has them. Those given for the command win.
func forward(names []string, given map[string]string, lookup lookupEnv) map[string]string {
	all := maps.Clone(given)
	for _, name := range names {
		if _, there := given[name]; there {
			continue
		}
		if value, ok := lookup(name); ok {
			if all == nil {
				all = map[string]string{}
			}
			all[name] = value
		}
	}
	return all
}
