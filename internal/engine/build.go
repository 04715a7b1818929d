package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Recipe is an image to build.
type Recipe struct {
	Context    []byte // tar archive
	Dockerfile string // its name in there
	Tag        string
	Args       map[string]string
	Labels     map[string]string
	NoCache    bool // build every step anew
}

// BuildProgress is where a build is: at the beginning of a step Output is empty, then it is one line the step prints,
// without what steers a terminal.
type BuildProgress struct {
	Step, Steps         int
	Instruction, Output string
}

// Build makes an image with the daemon's classic builder, which every Docker has, and returns its id. report, which may be nil, is called in
// order and from this goroutine. What the stages before the last one leave is removed; when ctx ends, all the build made is. After a
// failed step the steps that worked stay, as the daemon's cache.
func (e *Engine) Build(ctx context.Context, r Recipe, report func(BuildProgress)) (string, error) {
	if err := e.ready(ctx); err != nil {
		return "", err
	}
	before, err := e.untagged(ctx)
	if err != nil {
		return "", err
	}
	args := make(map[string]*string, len(r.Args))
	for name, value := range r.Args {
		args[name] = &value
	}
	did := "building " + r.Tag
	reading, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	l := buildLog{report: report, hangUp: hangUp}
	defer context.AfterFunc(ctx, l.stop)()
	response, err := e.api.ImageBuild(reading, bytes.NewReader(r.Context), build.ImageBuildOptions{
		Version: build.BuilderV1, Dockerfile: r.Dockerfile, Tags: []string{r.Tag}, BuildArgs: args, Labels: r.Labels,
		NoCache: r.NoCache, Remove: true, ForceRemove: true,
	})
	if err != nil {
		return "", e.explain(did, err)
	}
	err = l.follow(response.Body)
	_ = response.Body.Close() // read only: nothing to lose
	var step *stepError
	switch {
	case err == nil && len(l.stages) == 0:
		return "", &contract.BackendError{Reason: did + ": the daemon names no image", Hint: "see whether docker build works there"}
	case err == nil:
		last := len(l.stages) - 1
		return l.stages[last], e.discard(ctx, before, l.stages[:last])
	case errors.As(err, &step):
		return "", step.explain(did)
	case ctx.Err() != nil:
		return "", errors.Join(e.explain(did, ctx.Err()), e.clear(context.WithoutCancel(ctx), before, &l))
	default:
		return "", e.explain(did, err)
	}
}

// untagged are the images without a name that no other image is built on.
func (e *Engine) untagged(ctx context.Context) (map[string]bool, error) {
	list, err := e.api.ImageList(ctx, image.ListOptions{Filters: filters.NewArgs(filters.Arg("dangling", "true"))})
	if err != nil {
		return nil, e.explain("listing images", err)
	}
	ids := map[string]bool{}
	for _, i := range list {
		ids[i.ID] = true
	}
	return ids, nil
}

// clear waits until the daemon has noticed that nobody reads any more and has ended the container of the step, and then removes the images
// that the steps before have made.
func (e *Engine) clear(ctx context.Context, before map[string]bool, l *buildLog) error {
	const (
		patience = 20 * time.Second
		pause    = 50 * time.Millisecond
	)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(pause)
	defer again.Stop()
	for l.container != "" {
		if _, err := e.Inspect(ctx, l.container); errors.Is(err, ErrNotFound) {
			break
		} else if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return &contract.BackendError{Reason: "container " + l.container + " of the build does not end", Hint: "docker rm -f " + l.container + " ends it"}
		case <-again.C:
		}
	}
	return e.discard(ctx, before, l.made)
}

// discard removes those of the images a build made, given by their ids or their beginnings, that are new and without a name or a use.
func (e *Engine) discard(ctx context.Context, before map[string]bool, made []string) error {
	now, err := e.untagged(ctx)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(now)) {
		if before[id] || !slices.ContainsFunc(made, func(m string) bool { return sameImage(id, m) }) {
			continue
		}
		if err := e.DeleteImage(ctx, id); err != nil && !errors.Is(err, ErrConflict) && !errors.Is(err, ErrNotFound) {
			return err
		}
	}
	return nil
}

// sameImage reports whether a build's log means id, in full or shortened.
func sameImage(id, said string) bool {
	return strings.HasPrefix(strings.TrimPrefix(id, "sha256:"), strings.TrimPrefix(said, "sha256:"))
}

// DeleteImage removes an image, and those it was built on that nothing else needs. [ErrConflict] when a container or another image needs it.
func (e *Engine) DeleteImage(ctx context.Context, ref string) error {
	if err := e.ready(ctx); err != nil {
		return err
	}
	_, err := e.api.ImageRemove(ctx, ref, image.RemoveOptions{PruneChildren: true})
	return e.explain("removing image "+ref, err)
}

// buildLog reads what the classic builder says.
type buildLog struct {
	report func(BuildProgress)

	at     BuildProgress
	half   string   // the beginning of a line
	words  []string // the last lines the step printed
	made   []string // ids of images the build made, shortened by the daemon
	cached bool     // the next id is of an image that was there
	stages []string // ids of the images that the stages ended with

	// A build ends when its reader hangs up. It must do so while a command runs, which is then not finished. Before its container has a name
	// the daemon would make one that nobody knows of, and in any other step an image.
	hangUp    func()
	mu        sync.Mutex
	stopping  bool
	container string // the one the step's command runs in
}

// stop ends the build, now or when the next command runs. It is called from another goroutine.
func (l *buildLog) stop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stopping = true; l.container != "" {
		l.hangUp()
		return
	}
	const patience = 10 * time.Second // a daemon that says nothing is not waited for
	time.AfterFunc(patience, l.hangUp)
}

// runsIn takes note of the step's container; empty when it has ended.
func (l *buildLog) runsIn(container string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.container = container; container != "" && l.stopping {
		l.hangUp()
	}
}

// stepError is a step that failed.
type stepError struct {
	at    BuildProgress
	words []string
	err   *jsonmessage.JSONError
}

func (s *stepError) Error() string { return s.err.Message }

// explain makes one sentence of what failed and the last it said.
func (s *stepError) explain(did string) error {
	const (
		hint     = "run it again when the cause is gone: steps that worked are kept; docs/operations.md tells what a build needs of the network"
		mostText = 70
	)
	reason := did
	if s.at.Step > 0 {
		reason = fmt.Sprintf("%s: step %d of %d, %s", did, s.at.Step, s.at.Steps, abridge(s.at.Instruction, mostText))
	}
	words := strings.Join(s.words, "; ")
	if s.err.Code != 0 {
		reason = fmt.Sprintf("%s, ended with status %d", reason, s.err.Code)
	}
	if words == "" || s.err.Code == 0 { // not a command of the recipe's, or one that said nothing
		words = s.err.Message
	}
	return &contract.BackendError{Reason: reason + ": " + words, Hint: hint, Err: s}
}

// abridge shortens a text to at most limit characters.
func abridge(text string, limit int) string {
	runes := []rune(text)
	if len(runes) <= limit {
		return text
	}
	return string(runes[:limit-1]) + "…"
}

// steering is what tells a terminal about colours and the cursor. The daemon itself makes standard error red.
var steering = regexp.MustCompile("\x1b\\[[0-9;?]*[ -/]*[@-~]")

// printable drops what is for a terminal's eyes: it is shown on ours, or in a message.
func printable(line string) string {
	line = steering.ReplaceAllString(line, "")
	return strings.Join(strings.FieldsFunc(line, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}

// follow reads until the build ends.
func (l *buildLog) follow(r io.Reader) error {
	messages := json.NewDecoder(r)
	for {
		var m jsonmessage.JSONMessage
		switch err := messages.Decode(&m); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Error != nil:
			l.take("\n") // the line that was not ended is the one to show
			return &stepError{at: l.at, words: l.words, err: m.Error}
		case m.Aux != nil:
			var made build.Result
			if err := json.Unmarshal(*m.Aux, &made); err != nil {
				return fmt.Errorf("read what the stage made: %w", err)
			}
			l.stages = append(l.stages, made.ID)
		}
		l.take(m.Stream)
	}
}

// take cuts what arrives into lines. A step need not end its last one; the daemon's own begin with a message.
func (l *buildLog) take(text string) {
	if l.half != "" && (strings.HasPrefix(text, removing) || strings.HasPrefix(text, arrow)) {
		text = "\n" + text
	}
	lines := strings.FieldsFunc(l.half+text+"\x00", func(r rune) bool { return r == '\n' || r == '\r' })
	l.half = strings.TrimSuffix(lines[len(lines)-1], "\x00")
	for _, line := range lines[:len(lines)-1] {
		l.line(line)
	}
}

// How the daemon begins lines of its own.
const (
	arrow    = " ---> "
	running  = "Running in "
	removing = "Removing intermediate container "
)

// line takes one line. The daemon's own look no different from what a step prints, so nothing is done because of one alone.
func (l *buildLog) line(line string) {
	var next BuildProgress
	if _, err := fmt.Sscanf(line, "Step %d/%d : ", &next.Step, &next.Steps); err == nil {
		_, instruction, _ := strings.Cut(line, " : ")
		next.Instruction = printable(instruction)
		l.at, l.words, l.cached = next, nil, false
		l.runsIn("")
		l.tell("")
		return
	}
	id, isArrow := strings.CutPrefix(line, arrow)
	switch {
	case isArrow && id == "Using cache":
		l.cached = true
		return
	case isArrow && isShortID(id):
		if !l.cached && !strings.HasPrefix(l.at.Instruction, "FROM ") {
			l.made = append(l.made, id)
		}
		return
	case isArrow && strings.HasPrefix(id, running):
		if strings.HasPrefix(l.at.Instruction, "RUN ") { // Docker has one for every other step, too, and runs nothing in it
			l.runsIn(strings.TrimPrefix(id, running))
		}
		return
	case strings.HasPrefix(line, removing):
		l.runsIn("")
		return
	}
	const kept, longest = 3, 300
	if line = printable(line); line == "" {
		return
	}
	l.words = append(l.words, abridge(line, longest))
	l.words = l.words[max(0, len(l.words)-kept):]
	l.tell(line)
}

func (l *buildLog) tell(output string) {
	if l.report != nil {
		now := l.at
		now.Output = output
		l.report(now)
	}
}

func isShortID(s string) bool {
	const length = 12
	return len(s) == length && strings.Trim(s, "0123456789abcdef") == ""
}
