package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// wrap says what was tried when err went wrong; nil stays nil. A hint goes along: who reads an outcome has nothing else.
func wrap(did string, err error) error {
	var backend *contract.BackendError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &backend) && backend.Hint != "":
		return fmt.Errorf("%s: %w (%s)", did, err, backend.Hint)
	default:
		return fmt.Errorf("%s: %w", did, err)
	}
}

// backendError wants err to be a contract.BackendError that says what to do.
func backendError(what string, err error) error {
	var backend *contract.BackendError
	switch {
	case err == nil:
		return fmt.Errorf("%s: no error, want a BackendError", what)
	case !errors.As(err, &backend):
		return fmt.Errorf("%s: %T %q, want a BackendError", what, err, said(err))
	case backend.Reason == "" || backend.Hint == "":
		return fmt.Errorf("%s: reason %q and hint %q, want both", what, backend.Reason, backend.Hint)
	}
	return nil
}

// fileError wants err to be a contract.FileError about path.
func fileError(what string, err error, path string) error {
	var file *contract.FileError
	switch {
	case !errors.As(err, &file):
		return fmt.Errorf("%s: %s, want a FileError", what, said(err))
	case file.Path != path || file.Problem == "":
		return fmt.Errorf("%s: the error is about %q and says %q, want %q and a problem", what, file.Path, file.Problem, path)
	}
	return nil
}

// said is what an error that may be nil says, for a message that is about more than it.
func said(err error) string {
	if err == nil {
		return "no error"
	}
	return err.Error()
}

// want compares two values of what.
func want[T comparable](what string, got, wanted T) error {
	if got != wanted {
		return fmt.Errorf("%s is %#v, want %#v", what, got, wanted)
	}
	return nil
}

// fill puts the home into an expected text.
func (b *box) fill(text string) string { return strings.ReplaceAll(text, "{home}", b.Info().Home) }

// clip shortens text for a message.
func clip(text string) string {
	const most = 300
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], "?"), len(text))
}

// quote makes text one word of a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// within makes a directory in the home for try and removes it afterwards.
func (b *box) within(ctx context.Context, try func(dir string) error) error {
	out, err := b.do(ctx, "mktemp -d ~/conformance.XXXXXX")
	if err != nil {
		return err
	}
	dir := strings.TrimSuffix(out, "\n")
	if !strings.HasPrefix(dir, "/") {
		return fmt.Errorf("mktemp -d: the output is %q, want a directory", clip(out))
	}
	err = try(dir)
	// Not with a Dir of its own: the lasting directory may be in there, and is to be another one for the next case.
	_, gone := b.Execute(context.WithoutCancel(ctx), contract.Request{Command: "cd; rm -rf " + quote(dir)})
	return errors.Join(err, wrap("remove "+dir, gone))
}
