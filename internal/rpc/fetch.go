package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

func (c *conn) fetch(ctx context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	var p fetchParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	path := textOr(p.Path, p.PathB64)
	var f contract.Faults
	if path == "" {
		f = append(f, contract.Fault{Key: "path", Problem: "must not be empty"})
	}
	if !filepath.IsAbs(p.Dest) {
		f = append(f, contract.Fault{Key: "dest", Problem: "must be an absolute path on this machine"})
	}
	if p.MaxBytes < 0 {
		f = append(f, contract.Fault{Key: "max_bytes", Problem: "must be 0 (no limit) or a positive number"})
	}
	if f != nil {
		return nil, f
	}
	env, err := c.environment(p.Env)
	if err != nil {
		return nil, err
	}
	n, err := fetchTo(ctx, env, path, p.Dest, p.MaxBytes)
	if err != nil {
		return nil, err
	}
	return mustMarshal(fetchResult{n}), nil
}

// fetchTo copies a file of the sandbox to dest, which then exists whole, or is as it was before. Until it is whole the copy has
// another name in the same directory, so that the rename cannot cross a file system.
func fetchTo(ctx context.Context, env contract.Environment, path, dest string, maxBytes int64) (n int64, err error) {
	tmp, err := os.CreateTemp(filepath.Dir(dest), ".dockerbox-fetch-*")
	if err != nil {
		return 0, hostFileError(dest, err)
	}
	defer func() {
		if err != nil {
			// A file that was closed or renamed already is what the error path may find.
			_ = tmp.Close()
			if removeErr := os.Remove(tmp.Name()); removeErr != nil && !errors.Is(removeErr, fs.ErrNotExist) {
				err = errors.Join(err, removeErr)
			}
		}
	}()
	if err := env.FetchFile(ctx, path, tmp, maxBytes); err != nil {
		if errors.Is(err, contract.ErrTooLarge) {
			return 0, &contract.FileError{Path: path, Problem: problemTooLarge}
		}
		return 0, err
	}
	info, err := tmp.Stat()
	if err != nil {
		return 0, hostFileError(dest, err)
	}
	if err := tmp.Close(); err != nil {
		return 0, hostFileError(dest, err)
	}
	// A rename puts itself in the place of anything, /dev/full included.
	if old, err := os.Lstat(dest); err == nil && !old.Mode().IsRegular() && old.Mode().Type() != fs.ModeSymlink {
		return 0, hostFileError(dest, errNotRegular)
	}
	if err := os.Rename(tmp.Name(), dest); err != nil {
		return 0, hostFileError(dest, err)
	}
	return info.Size(), nil
}

var errNotRegular = errors.New("there is something that is no regular file")

// hostFileError is a failure on this side. The name of the temporary file would only confuse.
func hostFileError(dest string, err error) error {
	for {
		var (
			path *fs.PathError
			link *os.LinkError
		)
		switch {
		case errors.As(err, &path):
			err = path.Err
		case errors.As(err, &link):
			err = link.Err
		default:
			return &contract.FileError{Path: dest, Problem: fmt.Sprintf("cannot be written on this machine: %s", err)}
		}
	}
}
