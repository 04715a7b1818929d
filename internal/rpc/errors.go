package rpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Error codes. Those above −32100 are ours, the others JSON-RPC's.
const (
	codeParse    = -32700
	codeRequest  = -32600
	codeMethod   = -32601
	codeParams   = -32602
	codeBackend  = -32000
	codeFile     = -32001
	kindBackend  = "backend"
	kindFile     = "file"
	kindConfig   = "config"
	kindProtocol = "protocol"
)

// problemTooLarge is the one file problem that clients act on.
const problemTooLarge = "too large"

// errorObject is the error member of an answer. Message is a sentence for people, Data for programs.
type errorObject struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *errorObject) Error() string { return e.Message }

// Shapes of errorObject.Data.
type (
	backendData struct {
		Kind   string `json:"kind"`
		Reason string `json:"reason"`
		Hint   string `json:"hint"`
	}
	fileData struct {
		Kind    string `json:"kind"`
		Path    string `json:"path"`
		Problem string `json:"problem"`
	}
	configData struct {
		Kind   string          `json:"kind"`
		Faults contract.Faults `json:"faults"`
	}
	protocolData struct {
		Kind   string `json:"kind"`
		Server int    `json:"server"`
		Client int    `json:"client"`
	}
)

func newError(code int, message string, data any) *errorObject {
	e := &errorObject{Code: code, Message: message}
	if data != nil {
		e.Data = mustMarshal(data)
	}
	return e
}

func unknownMethod(name string) *errorObject {
	return newError(codeMethod, fmt.Sprintf("method %.64q is unknown", name), nil)
}

// mustMarshal encodes values of this package, none of which can fail to encode.
func mustMarshal(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// errorFor turns what a provider returned into an answer. Every kind but the named ones is a failure of the backend.
func errorFor(err error) *errorObject {
	var (
		object  *errorObject
		faults  contract.Faults
		file    *contract.FileError
		backend *contract.BackendError
	)
	switch {
	case errors.As(err, &object):
		return object
	case errors.As(err, &faults):
		return newError(codeParams, faults.Error(), configData{kindConfig, faults})
	case errors.As(err, &file):
		return newError(codeFile, file.Error(), fileData{kindFile, file.Path, file.Problem})
	case errors.As(err, &backend):
		return newError(codeBackend, backend.Reason, backendData{kindBackend, backend.Reason, backend.Hint})
	default:
		return newError(codeBackend, err.Error(), backendData{kindBackend, err.Error(), "try again; dockerbox ps tells whether the daemon answers"})
	}
}

// errorFrom is the inverse of errorFor, for the client.
func errorFrom(e *errorObject) error {
	var kind struct {
		Kind string `json:"kind"`
	}
	if len(e.Data) > 0 && json.Unmarshal(e.Data, &kind) == nil {
		switch kind.Kind {
		case kindBackend:
			var d backendData
			if json.Unmarshal(e.Data, &d) == nil {
				return &contract.BackendError{Reason: d.Reason, Hint: d.Hint}
			}
		case kindFile:
			var d fileData
			if json.Unmarshal(e.Data, &d) == nil {
				if d.Problem == problemTooLarge {
					return fmt.Errorf("%s: %w", d.Path, contract.ErrTooLarge)
				}
				return &contract.FileError{Path: d.Path, Problem: d.Problem}
			}
		case kindConfig:
			var d configData
			if json.Unmarshal(e.Data, &d) == nil && len(d.Faults) > 0 {
				return d.Faults
			}
		}
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("dockerbox serve answered with error %d: %s", e.Code, e.Message),
		Hint:   "check that both sides are of one version with dockerbox version",
		Err:    e,
	}
}

// fault is one wrong parameter.
func fault(key, problem string) contract.Faults { return contract.Faults{{Key: key, Problem: problem}} }

// decodeParams reads params into p. Absent params are an empty object.
func decodeParams(raw json.RawMessage, p any) error {
	if len(raw) == 0 {
		return nil
	}
	err := json.Unmarshal(raw, p)
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrong):
		key := wrong.Field
		if key == "" {
			key = "params"
		}
		return fault(key, fmt.Sprintf("must be %s, not a JSON %s", typeName(wrong), wrong.Value))
	default: // a base64 field that is not base64: encoding/json does not say which
		return fault("params", err.Error())
	}
}

// typeName says what a wrong value should have been, in JSON's words.
func typeName(e *json.UnmarshalTypeError) string {
	switch k := e.Type.Kind().String(); k {
	case "bool":
		return "a boolean"
	case "string":
		return "a string"
	case "struct", "map":
		return "an object"
	case "slice":
		if e.Type.Elem().Kind().String() == "uint8" {
			return "a base64 string"
		}
		return "an array"
	case "int", "int64":
		return "a whole number"
	default:
		return "a number"
	}
}
