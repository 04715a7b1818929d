//go:build integration

package integration

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/transfer"
)

// Where things go is what docker cp does, so docker cp is what tells.

// copySources and copyDests are paths below a directory that copyGround makes. Each source goes to each destination.
var (
	copySources = []string{"file", "file/", "dir", "dir/.", "link", "dlink", "dlink/", "none"}
	copyDests   = []string{"new", "new/", "file", "file/", "dir", "dir/", "link", "dlink", "dlink/", "dangling", "none/deep", "full"}
)

// copyGround is a shell command that makes what is copied from and to, in a directory of its own.
const copyGround = `mkdir -p dir/sub empty full/dir/sub full/file && echo "$1" >file && echo "$1 f" >dir/f && echo "$1 g" >dir/sub/g && ln -s file link && ln -s dir dlink && ln -s nothing dangling && echo "$1 old" >full/link && echo "$1" >full/dlink && echo "$1" >full/dir/sub/kept`

// copyList lists a directory: what there is, where links lead, what files hold.
const copyList = `find . -mindepth 1 -type f -printf '%p: ' -exec cat {} ';' -o -mindepth 1 -printf '%p %y %l\n' | sort`

// copyFailsThere are copies out of a sandbox that docker cp refuses although it does the same without the slash, and in the other direction.
var copyFailsThere = map[string]bool{"dir/. to dlink/": true}

func TestCopiesGoWhereDockerCPPutsThem(t *testing.T) {
	_, env := newSandbox(t)
	t.Run("in", func(t *testing.T) { copyRules(t, env, true) })
	t.Run("out", func(t *testing.T) { copyRules(t, env, false) })
}

// shell runs a command in dir on one of the two sides.
func shell(t *testing.T, env contract.Environment, inside bool, dir, command string) string {
	t.Helper()
	if inside {
		r := run(t, env, contract.Request{Argv: []string{"bash", "-c", "mkdir -p \"$0\" && cd \"$0\" && " + command, dir, "x"}, User: "0"})
		if r.ExitCode != 0 {
			t.Fatalf("%s: %s", command, r.Output)
		}
		return string(r.Output)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "mkdir -p \"$0\" && cd \"$0\" && "+command, dir, "x").CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	return string(out)
}

func copyRules(t *testing.T, env contract.Environment, in bool) {
	there, here := "/tmp/"+freshName("cp"), t.TempDir()
	// A ground to copy from on one side, and on the other two for each case, one for docker cp and one for us.
	from, to := there, here
	if in {
		from, to = here, there
	}
	shell(t, env, !in, from+"/from", copyGround)
	count := len(copySources) * len(copyDests)
	shell(t, env, in, to, fmt.Sprintf(`for i in {1..%d}; do for w in theirs ours; do mkdir -p $i/$w && (cd $i/$w && set -- old && %s) || exit; done; done`, count, copyGround))
	type answer struct{ theirs, ours error }
	answers := map[string]answer{}
	i := 0
	for _, source := range copySources {
		for _, dest := range copyDests {
			i++
			place := func(who string) string { return fmt.Sprintf("%s/%d/%s/%s", to, i, who, dest) }
			id := env.Info().ContainerID + ":"
			words := []string{"cp", id + from + "/from/" + source, place("theirs")}
			if in {
				words = []string{"cp", from + "/from/" + source, id + place("theirs")}
			}
			var a answer
			a.theirs = exec.CommandContext(t.Context(), "docker", words...).Run()
			o := transfer.Options{Tree: true, User: "0"}
			if in {
				_, a.ours = transfer.In(t.Context(), env, from+"/from/"+source, place("ours"), o)
			} else {
				_, a.ours = transfer.Out(t.Context(), env, from+"/from/"+source, place("ours"), o)
			}
			answers[fmt.Sprint(i)] = a
		}
	}
	lists := shell(t, env, in, to, fmt.Sprintf(`for i in {1..%d}; do for w in theirs ours; do echo "== $i $w"; (cd $i/$w && %s); done; done`, count, copyList))
	found := map[string]string{}
	for part := range strings.SplitSeq(lists, "== ") {
		name, list, _ := strings.Cut(part, "\n")
		found[name] = list
	}
	i = 0
	for _, source := range copySources {
		for _, dest := range copyDests {
			i++
			a, name := answers[fmt.Sprint(i)], source+" to "+dest
			if !in && copyFailsThere[name] {
				if a.theirs == nil || a.ours != nil {
					t.Errorf("%s: docker cp %v, dockerbox cp %v", name, a.theirs, a.ours)
				}
				continue
			}
			if (a.theirs == nil) != (a.ours == nil) {
				t.Errorf("%s: docker cp %v, dockerbox cp %v", name, a.theirs, a.ours)
				continue
			}
			if diff := cmp.Diff(found[fmt.Sprintf("%d theirs", i)], found[fmt.Sprintf("%d ours", i)]); diff != "" {
				t.Errorf("%s (%v, %v): docker cp - and dockerbox cp +\n%s", name, a.theirs, a.ours, diff)
			}
		}
	}
	if len(found) != 2*count+1 {
		t.Errorf("%d lists of %d cases", len(found), count)
	}
	if left, err := filepath.Glob(filepath.Join(here, "*", "*", ".dockerbox-*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
