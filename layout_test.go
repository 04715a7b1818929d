package dockerbox_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/hermes-dockerbox/dockerbox"

// layer is what one package may import.
type layer struct {
	level int
	// own lists packages of this module, all of a lower level.
	own []string
	// foreign lists modules or packages by prefix; nil allows any, empty the standard
	// library alone.
	foreign []string
}

// layers holds every package of the module. Tests are held less tightly: a package's tests
// may import any own package up to its own level, because that is how a lower layer is
// tried with the real thing beside it, and any library.
var layers = map[string]layer{
	"":                  {level: 0, foreign: []string{}},
	"contract":          {level: 0, foreign: []string{}},
	"image":             {level: 0, foreign: []string{"github.com/opencontainers/image-spec"}},
	"plugin":            {level: 0, foreign: []string{}},
	"internal/wire":     {level: 0, foreign: []string{}},
	"internal/agentbin": {level: 0, foreign: []string{}},
	"internal/rfb":      {level: 0, foreign: []string{}},
	"internal/archive":  {level: 0, foreign: []string{"golang.org/x/sys/unix"}},
	"internal/engine":   {level: 1, own: []string{"contract"}},
	"internal/agent":    {level: 1, own: []string{"internal/archive", "internal/wire"}, foreign: []string{"golang.org/x/sys/unix"}},
	"internal/rpc":      {level: 2, own: []string{"contract", "internal/wire", "transfer"}, foreign: []string{"github.com/docker/go-units"}},
	"transfer":          {level: 1, own: []string{"contract", "internal/archive", "internal/wire"}, foreign: []string{}},
	"conformance":       {level: 1, own: []string{"contract"}, foreign: []string{}},
	// What plays an engine in tests stands beside what uses one.
	"internal/engine/enginetest": {level: 2, own: []string{"contract", "internal/wire", "internal/engine"}},
	"environment":                {level: 2, own: []string{"contract", "internal/wire", "internal/engine"}},
	"cmd/dockerbox-agent":        {level: 2, own: []string{"internal/agent", "internal/wire"}, foreign: []string{}},
	"provider":                   {level: 3, own: []string{"contract", "image", "internal/agentbin", "internal/wire", "internal/engine", "environment"}},
	"desktop":                    {level: 3, own: []string{"contract", "internal/rfb", "environment"}, foreign: []string{}},
	"image/verify":               {level: 4, own: []string{"contract", "desktop", "provider"}, foreign: []string{"github.com/opencontainers/image-spec"}},
	"cmd/dockerbox":              {level: 5, own: []string{"contract", "desktop", "image/verify", "conformance", "image", "plugin", "internal/wire", "internal/rpc", "provider", "transfer"}},
	"integration":                {level: 6},
	"integration/bench":          {level: 6, own: []string{"contract", "desktop", "image", "internal/agentbin", "internal/engine", "provider"}},
}

// onlyIn names libraries that a single package may import, tests included: a second user
// would grow a second idea of how to talk to a daemon.
var onlyIn = map[string]string{
	"github.com/docker/docker/client": "internal/engine",
	"github.com/docker/cli/cli":       "internal/engine",
	// How docker reads the values of its flags, for those people put into terminal.docker_extra_args; it talks to nobody.
	"github.com/docker/cli/opts": "provider",
}

// pkg is the part of `go list -json` that the rules look at.
type pkg struct {
	ImportPath   string
	Name         string
	Dir          string
	Standard     bool
	GoFiles      []string
	CgoFiles     []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func (p pkg) path() string {
	return strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
}

// violations returns one sentence per broken rule.
func violations(packages []pkg, layers map[string]layer, onlyIn map[string]string) []string {
	var found []string
	seen := map[string]bool{}
	for _, p := range packages {
		seen[p.path()] = true
		rule, known := layers[p.path()]
		if !known {
			found = append(found, fmt.Sprintf("%s is not in the table of layers", p.ImportPath))
			continue
		}
		for _, imported := range p.Imports {
			if why := rule.refuses(imported); why != "" {
				found = append(found, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imported, why))
			}
		}
		for _, imported := range slices.Concat(p.TestImports, p.XTestImports) {
			if other, own := ownPath(imported); own && layers[other].level > rule.level {
				found = append(found, fmt.Sprintf("a test of %s imports %s: it is of a higher level", p.ImportPath, imported))
			}
		}
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			for library, home := range onlyIn {
				if within(imported, library) && p.path() != home {
					found = append(found, fmt.Sprintf("%s imports %s: only %s may", p.ImportPath, imported, home))
				}
			}
		}
	}
	for path, rule := range layers {
		if !seen[path] {
			found = append(found, fmt.Sprintf("the table of layers names %q, which does not exist", path))
		}
		for _, other := range rule.own {
			if layers[other].level >= rule.level {
				found = append(found, fmt.Sprintf("the table lets %s import %s, which is not of a lower level", path, other))
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// refuses returns why a non-test import is not allowed, or nothing.
func (l layer) refuses(imported string) string {
	if path, own := ownPath(imported); own {
		if !slices.Contains(l.own, path) {
			return "the table of layers does not allow it"
		}
		return ""
	}
	standard := !strings.Contains(strings.SplitN(imported, "/", 2)[0], ".")
	if standard || l.foreign == nil || slices.ContainsFunc(l.foreign, func(prefix string) bool { return within(imported, prefix) }) {
		return ""
	}
	return "its foreign imports are limited to " + strings.Join(append([]string{"the standard library"}, l.foreign...), ", ")
}

func ownPath(imported string) (string, bool) {
	return strings.TrimPrefix(strings.TrimPrefix(imported, module), "/"), within(imported, module)
}

func within(imported, prefix string) bool {
	return imported == prefix || strings.HasPrefix(imported, prefix+"/")
}

// listPackages returns the module's own packages, those behind the integration tag too, as
// seen on Linux, where every package has its files.
func listPackages(t *testing.T) []pkg {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-tags", "integration", "-json", "./...")
	command.Env = append(os.Environ(), "GOOS=linux")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.Bytes())
	}
	var packages []pkg
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("decode go list: %v", err)
		}
		packages = append(packages, p)
	}
}

func TestImportsKeepTheLayers(t *testing.T) {
	for _, sentence := range violations(listPackages(t), layers, onlyIn) {
		t.Error(sentence)
	}
}

// The rules themselves, over packages that do not exist.
func TestViolations(t *testing.T) {
	const client = "github.com/docker/docker/client"
	table := map[string]layer{
		"low":    {level: 0, foreign: []string{}},
		"middle": {level: 1, own: []string{"low"}, foreign: []string{"golang.org/x/sys"}},
		"engine": {level: 1},
		"high":   {level: 2, own: []string{"low", "engine"}},
	}
	only := map[string]string{client: "engine"}
	with := func(path string, edit func(*pkg)) []pkg {
		var packages []pkg
		for _, name := range []string{"low", "middle", "engine", "high"} {
			p := pkg{ImportPath: module + "/" + name, Imports: []string{"fmt", "encoding/json"}}
			if name == path {
				edit(&p)
			}
			packages = append(packages, p)
		}
		return packages
	}
	imports := func(names ...string) func(*pkg) { return func(p *pkg) { p.Imports = names } }
	tests := func(names ...string) func(*pkg) { return func(p *pkg) { p.XTestImports = names } }
	for _, test := range []struct {
		name     string
		packages []pkg
		want     string // part of the only sentence; empty: no violation
	}{
		{"nothing but the standard library", with("", nil), ""},
		{"allowed own import", with("high", imports(module+"/low")), ""},
		{"allowed foreign import", with("middle", imports("golang.org/x/sys/unix")), ""},
		{"own import upwards", with("low", imports(module+"/high")), "low imports " + module + "/high"},
		{"own import not in the row", with("high", imports(module+"/middle")), "does not allow it"},
		{"foreign import where only the standard library is", with("low", imports("github.com/google/go-cmp/cmp")), "limited to the standard library"},
		{"a name that only begins like an allowed one", with("middle", imports("golang.org/x/system")), "limited to"},
		{"docker client in its home", with("engine", imports(client)), ""},
		{"docker client elsewhere", with("high", imports(client)), "only engine may"},
		{"docker client in a test elsewhere", with("high", tests(client)), "only engine may"},
		{"a test with a neighbour of the same level", with("middle", tests(module+"/engine")), ""},
		{"a test that reaches up", with("low", tests(module+"/high")), "higher level"},
		{"a test with a library", with("low", tests("github.com/google/go-cmp/cmp")), ""},
		{"package without a row", append(with("", nil), pkg{ImportPath: module + "/new"}), "new is not in the table"},
		{"row without a package", with("", nil)[1:], `names "low", which does not exist`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := violations(test.packages, table, only)
			if test.want == "" && len(got) == 0 || len(got) == 1 && test.want != "" && strings.Contains(got[0], test.want) {
				return
			}
			t.Errorf("violations = %q, want one with %q", got, test.want)
		})
	}
	table["low"] = layer{level: 2, own: []string{"high"}}
	if got := violations(with("", nil), table, only); !slices.ContainsFunc(got, func(s string) bool {
		return strings.Contains(s, "not of a lower level")
	}) {
		t.Errorf("a table that lets a package import its own level passed: %q", got)
	}
}

// commented returns which of the files carry a package comment.
func commented(files []string) ([]string, error) {
	var with []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return nil, err
		}
		if parsed.Doc != nil && strings.TrimSpace(parsed.Doc.Text()) != "" {
			with = append(with, filepath.Base(file))
		}
	}
	return with, nil
}

// Two package comments are joined by godoc in the order of file names, which nobody
// writes them for. A package of tests alone needs one as well.
func TestOneFileCarriesThePackageComment(t *testing.T) {
	for _, p := range listPackages(t) {
		files := slices.Concat(p.GoFiles, p.CgoFiles)
		if len(files) == 0 {
			files = slices.Concat(p.TestGoFiles, p.XTestGoFiles)
		}
		for i, file := range files {
			files[i] = filepath.Join(p.Dir, file)
		}
		with, err := commented(files)
		if err != nil {
			t.Error(err)
		}
		if len(with) != 1 {
			t.Errorf("%s: %d files carry a package comment, want one: %v", p.ImportPath, len(with), with)
		}
	}
}

func TestCommentedSeesOnlyPackageComments(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.go": "// Package a is described.\npackage a\n",
		"b.go": "//go:build linux\n\npackage a\n",
		"c.go": "// a remark, detached\n\npackage a\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := commented([]string{filepath.Join(dir, "a.go"), filepath.Join(dir, "b.go"), filepath.Join(dir, "c.go")})
	if err != nil || !slices.Equal(got, []string{"a.go"}) {
		t.Errorf("commented = %v, %v, want [a.go]", got, err)
	}
}

// docker/cli v29 goes with another client module; an unpinned tidy selects it and the
// build breaks. The two have to be of one version.
func TestDockerModulesArePinned(t *testing.T) {
	const pin = "v28.5.2+incompatible"
	command := exec.CommandContext(t.Context(), "go", "mod", "edit", "-json")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go mod edit: %v", err)
	}
	var mod struct {
		Require []struct{ Path, Version string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := json.Unmarshal(out, &mod); err != nil {
		t.Fatal(err)
	}
	versions := map[string]string{}
	for _, require := range mod.Require {
		versions[require.Path] = require.Version
	}
	for _, path := range []string{"github.com/docker/docker", "github.com/docker/cli"} {
		if versions[path] != pin {
			t.Errorf("go.mod requires %s %q, want %s", path, versions[path], pin)
		}
	}
	if len(mod.Replace) != 0 {
		t.Errorf("go.mod replaces modules, which `go install` of a release refuses: %v", mod.Replace)
	}
}
