//go:build linux

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestPublish(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o700); err != nil {
		t.Fatal(err)
	}
	page, file := filepath.Join(root, "docs", "benchmarks.md"), filepath.Join(root, "figures.json")
	r := exampleReport()

	var out strings.Builder
	if err := publish(r, options{json: file, write: true}, root, &out); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != markdown(r) {
		t.Errorf("the page: %v, %q", err, text)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var again report
	if err := json.Unmarshal(text, &again); err != nil || len(again.Rows) != len(r.Rows) || again.Rows[0].Checks[0] != r.Rows[0].Checks[0] {
		t.Errorf("the figures: %v, %s", err, text)
	}
	if !strings.Contains(out.String(), "2 of 3 targets met") {
		t.Errorf("the table: %s", out.String())
	}

	out.Reset()
	if err := publish(r, options{json: "-"}, root, &out); err != nil || !json.Valid([]byte(out.String())) {
		t.Errorf("stdout: %v, %s", err, out.String())
	}

	// A page of which a part is missing must not take the place of a whole one.
	r.Failed = []string{"flood: broken"}
	r.Rows = nil
	before := markdown(exampleReport())
	if err := publish(r, options{write: true}, root, &out); err == nil {
		t.Error("a run with a failure was written down")
	}
	if text, err := os.ReadFile(page); err != nil || string(text) != before {
		t.Errorf("the page after a failure: %v, %q", err, text)
	}
}
