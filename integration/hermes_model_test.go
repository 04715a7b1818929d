//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// toolCall is what the scripted model asks for next.
type toolCall struct {
	Name      string
	Arguments map[string]any
}

// scriptedModel is an OpenAI-compatible endpoint that plays a fixed series of tool calls. How far it is follows from the conversation
// it is shown, so requests that Hermes makes besides, for a title or a retry, do not disturb it.
type scriptedModel struct {
	*httptest.Server
	steps []func(results []string) toolCall

	mu      sync.Mutex
	results []string // the contents of the tool messages of the longest conversation seen
	faults  []string
}

func newScriptedModel(t *testing.T, steps ...func(results []string) toolCall) *scriptedModel {
	t.Helper()
	m := &scriptedModel{steps: steps}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, map[string]any{"object": "list", "data": []any{
			map[string]any{"id": "scripted", "object": "model", "owned_by": "tests", "context_length": 200000},
		}})
	})
	mux.HandleFunc("POST /v1/chat/completions", m.complete)
	m.Server = httptest.NewServer(mux)
	t.Cleanup(m.Close)
	return m
}

// chatRequest is the part of a request that decides the answer.
type chatRequest struct {
	Stream   bool             `json:"stream"`
	Tools    []map[string]any `json:"tools"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
}

func (m *scriptedModel) complete(w http.ResponseWriter, r *http.Request) {
	var request chatRequest
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		m.fault("request: %v", err)
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var results []string
	for _, message := range request.Messages {
		if message.Role != "tool" {
			continue
		}
		var text string
		if err := json.Unmarshal(message.Content, &text); err != nil {
			text = string(message.Content)
		}
		results = append(results, text)
	}
	answer, reason := map[string]any{"role": "assistant", "content": "all done"}, "stop"
	if len(request.Tools) > 0 {
		m.keep(results)
		if len(results) < len(m.steps) {
			call := m.steps[len(results)](results)
			arguments, err := json.Marshal(call.Arguments)
			if err != nil {
				m.fault("arguments: %v", err)
			}
			answer, reason = map[string]any{"role": "assistant", "content": nil, "tool_calls": []any{map[string]any{
				"index": 0, "id": fmt.Sprintf("call_%d", len(results)), "type": "function",
				"function": map[string]any{"name": call.Name, "arguments": string(arguments)},
			}}}, "tool_calls"
		}
	}
	if request.Stream {
		m.stream(w, answer, reason)
		return
	}
	writeJSON(w, map[string]any{
		"id": "scripted", "object": "chat.completion", "created": 1, "model": "scripted",
		"choices": []any{map[string]any{"index": 0, "message": answer, "finish_reason": reason}},
		"usage":   map[string]any{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
}

func (m *scriptedModel) stream(w http.ResponseWriter, answer map[string]any, reason string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, choice := range []map[string]any{
		{"index": 0, "delta": answer, "finish_reason": nil},
		{"index": 0, "delta": map[string]any{}, "finish_reason": reason},
	} {
		event, err := json.Marshal(map[string]any{
			"id": "scripted", "object": "chat.completion.chunk", "created": 1, "model": "scripted", "choices": []any{choice},
		})
		if err != nil {
			m.fault("event: %v", err)
		}
		fmt.Fprintf(w, "data: %s\n\n", event)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m *scriptedModel) keep(results []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(results) > len(m.results) {
		m.results = results
	}
}

func (m *scriptedModel) fault(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, fmt.Sprintf(format, args...))
}

// told returns the tool results the model was shown, in order; it fails the test when the endpoint itself had trouble.
func (m *scriptedModel) told(t *testing.T) []string {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, fault := range m.faults {
		t.Error("scripted model: " + fault)
	}
	return m.results
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler) // the client went away: nothing else can fail here
	}
}
