package plugin

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Hermes loads the plugin by its manifest and __init__.py, which an embed pattern easily leaves out, and a Python that ran in the
// source tree leaves caches that must not be carried along.
func TestFSHoldsThePluginAndNothingElse(t *testing.T) {
	var embedded []string
	err := fs.WalkDir(FS, Root, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			embedded = append(embedded, path.Base(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.FromSlash(Root))
	if err != nil {
		t.Fatal(err)
	}
	var source []string
	for _, e := range entries {
		if !e.IsDir() && (strings.HasSuffix(e.Name(), ".py") || strings.HasSuffix(e.Name(), ".yaml")) {
			source = append(source, e.Name())
		}
	}
	sort.Strings(source)
	if diff := cmp.Diff(source, embedded); diff != "" {
		t.Errorf("sources and embedded files differ (-source +embedded):\n%s", diff)
	}
	for _, name := range []string{"__init__.py", "plugin.yaml"} {
		if _, err := fs.Stat(FS, path.Join(Root, name)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The name is part of the contract with `dockerbox plugin install`.
func TestBinaryRecordIsTheFileThePluginReads(t *testing.T) {
	locate, err := fs.ReadFile(FS, path.Join(Root, "locate.py"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(locate), "\nRECORD = \""+BinaryRecord+"\"\n") {
		t.Errorf("locate.py does not read the file %q", BinaryRecord)
	}
}
