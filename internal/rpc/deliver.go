package rpc

import (
	"context"
	"encoding/json"
	"path/filepath"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/transfer"
)

const (
	methodDeliver  = "deliver"
	featureDeliver = "deliver"
)

type (
	deliverParams struct {
		Env      string        `json:"env"`
		Dest     string        `json:"dest"`
		Files    []deliverFile `json:"files,omitempty"`
		Remove   []string      `json:"remove,omitempty"`
		MaxBytes int64         `json:"max_bytes,omitempty"`
	}
	deliverFile struct {
		Source string `json:"source"`
		Path   string `json:"path"`
	}
	deliverResult struct {
		Files   int64 `json:"files"`
		Bytes   int64 `json:"bytes"`
		Removed int64 `json:"removed"`
		// Problem names the first file that was left out; empty when none was.
		Problem string `json:"problem,omitempty"`
	}
)

func (p *deliverParams) faults() contract.Faults {
	var f contract.Faults
	if p.Dest == "" {
		f = append(f, contract.Fault{Key: "dest", Problem: "must be a directory in the sandbox"})
	}
	for _, file := range p.Files {
		if !filepath.IsAbs(file.Source) || file.Path == "" {
			f = append(f, contract.Fault{Key: "files", Problem: "each must have an absolute source on this machine and a path below dest"})
			break
		}
	}
	if p.MaxBytes < 0 {
		f = append(f, contract.Fault{Key: "max_bytes", Problem: "must be 0 (no limit) or a positive number"})
	}
	return f
}

// deliver copies files of this machine below a directory of the sandbox, as its account, and removes others there.
func (c *conn) deliver(ctx context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	var p deliverParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	if f := p.faults(); f != nil {
		return nil, f
	}
	env, err := c.environment(p.Env)
	if err != nil {
		return nil, err
	}
	var result deliverResult
	if len(p.Files) > 0 {
		files := make([]transfer.File, len(p.Files))
		for i, file := range p.Files {
			files[i] = transfer.File{Source: file.Source, Name: file.Path}
		}
		totals, err := transfer.Deliver(ctx, env, files, p.Dest, p.MaxBytes, transfer.Options{})
		result.Files, result.Bytes = totals.Files, totals.Bytes
		if transfer.IsPartial(err) {
			result.Problem = err.Error()
			err = nil
		}
		if err != nil {
			return nil, err
		}
	}
	if len(p.Remove) > 0 {
		if result.Removed, err = transfer.Remove(ctx, env, p.Dest, p.Remove, transfer.Options{}); err != nil {
			return nil, err
		}
	}
	return mustMarshal(result), nil
}
