package desktop

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// startError says why there is no screen.
func (s screen) startError(ctx context.Context, status int, all said, o Options) error {
	info, fault := s.env.Info(), clean(all.first("fault"))
	switch status {
	case exitLacking:
		return &contract.BackendError{
			Reason: fmt.Sprintf("image %s has no screen to offer: it lacks %s", info.Image, strings.Join(strings.Fields(fault), ", ")),
			Hint:   fmt.Sprintf("dockerbox image verify %s lists all that is missing; dockerbox/desktop:latest has it", info.Image),
		}
	case exitTaken:
		return &contract.BackendError{
			Reason: fmt.Sprintf("sandbox %q: %s", info.Name, fault),
			Hint:   "end that one first: a sandbox has one screen, and it is display :20",
		}
	case exitStale:
		return &contract.BackendError{
			Reason: fmt.Sprintf("sandbox %q: %s, and even root could not remove it", info.Name, fault),
			Hint:   "dockerbox up --recreate makes the sandbox anew and keeps its home",
		}
	case exitFailed, contract.ExitTimedOut:
		file := s.base + "/" + o.Profile + "/launcher.log"
		reason := fmt.Sprintf("the screen of sandbox %q did not start: %s", info.Name, fault)
		if last := s.lastWords(ctx, file); last != "" {
			reason += "; its last words: " + last
		}
		return &contract.BackendError{Reason: reason, Hint: fmt.Sprintf("all it said is in %s inside the sandbox", file)}
	default:
		return s.scriptError("started", status, all)
	}
}

// scriptError is for what only a broken image or a bent sandbox brings about.
func (s screen) scriptError(done string, status int, all said) error {
	info := s.env.Info()
	e := &contract.BackendError{
		Reason: fmt.Sprintf("the screen of sandbox %q could not be %s: %s", info.Name, done, clean(all.first("fault"))),
		Hint:   "the image must have bash, and the files of the screen must be of account " + s.account,
	}
	if all.first("fault") == "" {
		e.Reason += fmt.Sprintf("a script ended with status %d", status)
	}
	return e
}

// lastWords are the last lines of a file, joined. It is only asked for the sake of a message that is about something worse.
func (s screen) lastWords(ctx context.Context, file string) string {
	const lines = "5"
	r, err := s.env.Execute(ctx, contract.Request{
		Argv: []string{"tail", "-n", lines, file}, User: s.account, Timeout: scriptLimit, MaxOutput: maxSaid,
	})
	if err != nil || r.ExitCode != 0 {
		return ""
	}
	var words []string
	for line := range strings.Lines(string(r.Output)) {
		if line = clean(line); line != "" {
			words = append(words, line)
		}
	}
	return strings.Join(words, " | ")
}

func (s screen) notRunning() error {
	name := s.env.Info().Name
	return &contract.BackendError{
		Reason: fmt.Sprintf("sandbox %q has no screen at the moment", name),
		Hint:   "dockerbox desktop start " + name,
	}
}

// streamError says what broke the talk with a screen: protocol is what the talk noticed, road how its stream ended.
func streamError(env contract.Environment, protocol, road error) error {
	var backend *contract.BackendError
	if errors.As(road, &backend) {
		return backend
	}
	return &contract.BackendError{
		Reason: fmt.Sprintf("the screen of sandbox %q cannot be read: %s", env.Info().Name, clean(protocol.Error())),
		Hint:   "if it stays, dockerbox desktop stop and start again", Err: protocol,
	}
}
