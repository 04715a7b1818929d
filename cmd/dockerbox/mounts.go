package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// mounts reads -v arguments. A source that begins with "." is relative to the caller's directory, as for docker.
func mounts(args []string) ([]contract.Mount, error) {
	var all []contract.Mount
	for _, arg := range args {
		m := contract.ParseMount(arg)
		if strings.HasPrefix(m.Source, ".") {
			full, err := filepath.Abs(m.Source)
			if err != nil {
				return nil, fmt.Errorf("%.60q is relative to a directory that cannot be told: %w", arg, err)
			}
			m.Source = full
		}
		all = append(all, m)
	}
	return all, nil
}
