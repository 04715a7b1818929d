package engine

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// said is what a daemon sends, one message for each text; one that begins with { is sent as it is.
func said(t *testing.T, texts ...string) string {
	t.Helper()
	var all strings.Builder
	for _, text := range texts {
		if !strings.HasPrefix(text, "{") {
			encoded, err := json.Marshal(map[string]string{"stream": text})
			if err != nil {
				t.Fatal(err)
			}
			text = string(encoded)
		}
		all.WriteString(text + "\n")
	}
	return all.String()
}

// A stage from the cache and one that is built, as Docker 20.10 tells it: what a step prints comes in pieces of any size.
var twoStages = []string{
	"Step 1/4 : FROM base AS one", "\n", " ---> b4a19574d688\n",
	"Step 2/4 : RUN first", "\n", " ---> Using cache\n", " ---> aaaaaaaaaaaa\n",
	`{"aux":{"ID":"sha256:aaaaaaaaaaaa0000"}}`,
	"Step 3/4 : FROM base", "\n", " ---> b4a19574d688\n",
	"Step 4/4 : RUN second &&    third", "\n", " ---> Running in 7abc91234567\n", "half", " a  \x1b[31mline\nand\r", "more\n\n",
	"Removing intermediate container 7abc91234567\n", " ---> cccccccccccc\n",
	`{"aux":{"ID":"sha256:cccccccccccc0000"}}`, "Successfully built cccccccccccc\n",
}

func TestBuildLogTellsStepsAndWhatWasMade(t *testing.T) {
	var got []BuildProgress
	l := buildLog{report: func(p BuildProgress) { got = append(got, p) }}
	if err := l.follow(strings.NewReader(said(t, twoStages...))); err != nil {
		t.Fatal(err)
	}
	second := BuildProgress{Step: 4, Steps: 4, Instruction: "RUN second && third"}
	with := func(output string) BuildProgress { p := second; p.Output = output; return p }
	want := []BuildProgress{
		{Step: 1, Steps: 4, Instruction: "FROM base AS one"}, {Step: 2, Steps: 4, Instruction: "RUN first"}, {Step: 3, Steps: 4, Instruction: "FROM base"},
		second, with("half a line"), with("and"), with("more"), with("Successfully built cccccccccccc"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"cccccccccccc"}, l.made); diff != "" {
		t.Errorf("made, without the base and the cache (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"sha256:aaaaaaaaaaaa0000", "sha256:cccccccccccc0000"}, l.stages); diff != "" {
		t.Errorf("stages (-want +got):\n%s", diff)
	}
}

// The reader hangs up only where it knows which container the daemon will end.
func TestABuildIsStoppedWhenItsContainerIsKnown(t *testing.T) {
	hungUp := 0
	l := buildLog{hangUp: func() { hungUp++ }}
	for _, step := range []struct {
		line string
		want int
	}{
		{"Step 1/3 : FROM base", 0}, {" ---> b4a19574d688", 0}, {"Step 2/3 : ENV A=1", 0}, {" ---> Running in 0bc91234567a", 0}, {"Step 2/3 : RUN one", 0}, {" ---> Using cache", 0}, {" ---> aaaaaaaaaaaa", 0},
		{"Step 3/3 : RUN two", 0}, {" ---> Running in 7abc91234567", 1},
	} {
		if step.line == " ---> b4a19574d688" {
			l.stop()
		}
		l.line(step.line)
		if hungUp != step.want {
			t.Errorf("after %q: %d", step.line, hungUp)
		}
	}
	if l.container != "7abc91234567" {
		t.Errorf("the container is %q", l.container)
	}
	hungUp = 0
	l = buildLog{hangUp: func() { hungUp++ }}
	l.line("Step 3/3 : RUN two")
	l.line(" ---> Running in 7abc91234567")
	if l.stop(); hungUp != 1 {
		t.Error("a step that runs goes on")
	}
	l.line("Removing intermediate container 7abc91234567")
	if l.container != "" {
		t.Errorf("the container that has ended is %q", l.container)
	}
}

func TestAFailedStepSaysItsLastWords(t *testing.T) {
	run := "Step 2/9 : RUN apt-get update     && apt-get install -y everything there is and a lot of other things\n"
	for name, test := range map[string]struct {
		said []string
		want string
	}{
		"a command's": {
			[]string{run, "one\ntwo\nthree\n", "E: Unable to loc", "ate package everything", `{"errorDetail":{"code":100,"message":"The command returned a non-zero code: 100"},"error":"x"}`},
			"building t: step 2 of 9, RUN apt-get update && apt-get install -y everything there is and a lo…, ended with status 100: two; three; E: Unable to locate package everything",
		},
		"a silent command's": {
			[]string{run, `{"errorDetail":{"code":7,"message":"The command returned a non-zero code: 7"},"error":"x"}`},
			"building t: step 2 of 9, RUN apt-get update && apt-get install -y everything there is and a lo…, ended with status 7: The command returned a non-zero code: 7",
		},
		"the words of the step before are not this one's": {
			[]string{run, "all went well\n", "Step 3/9 : COPY a b\n", `{"errorDetail":{"message":"COPY failed: no source files were specified"},"error":"x"}`},
			"building t: step 3 of 9, COPY a b: COPY failed: no source files were specified",
		},
		"before the first step": {
			[]string{`{"errorDetail":{"message":"dockerfile parse error"},"error":"x"}`},
			"building t: dockerfile parse error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := new(buildLog).follow(strings.NewReader(said(t, test.said...)))
			var step *stepError
			if !errors.As(err, &step) {
				t.Fatalf("%v is not a failed step", err)
			}
			var b *contract.BackendError
			if err := step.explain("building t"); !errors.As(err, &b) || b.Reason != test.want || b.Hint == "" {
				t.Errorf("%q, hint %q\nwant %q", b.Reason, b.Hint, test.want)
			}
		})
	}
}

func TestABuildThatIsCutShortIsAnError(t *testing.T) {
	whole := said(t, twoStages...)
	if err := new(buildLog).follow(strings.NewReader(whole[:len(whole)-20])); err == nil {
		t.Error("half a message was taken for the end of the build")
	}
}

func TestSameImage(t *testing.T) {
	const id = "sha256:cccccccccccc0000"
	for said, want := range map[string]bool{id: true, "cccccccccccc": true, "cccccccccccc0000": true, "dddddddddddd": false, "0000": false} {
		if sameImage(id, said) != want {
			t.Errorf("%s: %v", said, !want)
		}
	}
}
