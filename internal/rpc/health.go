package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// What a provider may offer beyond [contract.Provider]. A server names in its hello what it has; the others are unknown methods.
const (
	methodDoctor  = "doctor"
	methodReap    = "reap"
	featureDoctor = methodDoctor
	featureReap   = methodReap
)

type (
	doctorResult struct {
		Checks []contract.Check `json:"checks"`
	}
	reapParams struct {
		Profile string `json:"profile"`
	}
	reapResult struct {
		Removed []string `json:"removed"`
	}
)

// features lists what a server of p can do.
func features(p contract.Provider) []string {
	features := []string{featureExecute}
	if p.SupportsStreams() {
		features = append(features, featureExecPrefix)
	}
	features = append(features, featureFetch, featureRaw, featureDeliver)
	if _, ok := p.(contract.Doctor); ok {
		features = append(features, featureDoctor)
	}
	if _, ok := p.(contract.Reaper); ok {
		features = append(features, featureReap)
	}
	return features
}

func (c *conn) doctor(ctx context.Context, _ *call, _ json.RawMessage) ([]byte, error) {
	d, ok := c.server.Provider.(contract.Doctor)
	if !ok {
		return nil, unknownMethod(methodDoctor)
	}
	checks := d.Doctor(ctx)
	if checks == nil {
		checks = []contract.Check{}
	}
	return mustMarshal(doctorResult{checks}), nil
}

func (c *conn) reap(ctx context.Context, _ *call, raw json.RawMessage) ([]byte, error) {
	r, ok := c.server.Provider.(contract.Reaper)
	if !ok {
		return nil, unknownMethod(methodReap)
	}
	var p reapParams
	if err := decodeParams(raw, &p); err != nil {
		return nil, err
	}
	removed, err := r.Reap(ctx, p.Profile)
	if err != nil {
		return nil, err
	}
	if removed == nil {
		removed = []string{}
	}
	return mustMarshal(reapResult{removed}), nil
}

var (
	_ contract.Doctor = (*Client)(nil)
	_ contract.Reaper = (*Client)(nil)
)

// Doctor asks the server for its rows. When it has none to give, by its version or because the connection is gone, that is the one row.
func (c *Client) Doctor(ctx context.Context) []contract.Check {
	const name = "dockerbox serve"
	if !slices.Contains(c.hello.Features, featureDoctor) {
		return []contract.Check{{
			Name: name, Status: contract.CheckWarn, Detail: "version " + c.hello.Version + " cannot check itself", Remedy: "update dockerbox",
		}}
	}
	var r doctorResult
	err := c.request(ctx, methodDoctor, nothing{}, &r)
	if err == nil {
		return r.Checks
	}
	row := contract.Check{Name: name, Status: contract.CheckFail, Detail: err.Error(), Remedy: "dockerbox doctor asks without a server"}
	var backend *contract.BackendError
	if errors.As(err, &backend) && backend.Hint != "" {
		row.Remedy = backend.Hint
	}
	return []contract.Check{row}
}

// Reap asks the server to remove what dead processes of a profile left behind.
func (c *Client) Reap(ctx context.Context, profile string) ([]string, error) {
	var r reapResult
	err := c.request(ctx, methodReap, reapParams{profile}, &r)
	return r.Removed, err
}
