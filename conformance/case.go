package conformance

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

// Case is one thing a backend promises.
type Case struct {
	// Name is "group/what", unique and stable: exceptions are declared by it.
	Name string
	// Rule says where the promise stands and what it is.
	Rule string
	// Run tries it. nil means that it holds; ctx bounds it.
	Run func(ctx context.Context, s Subject) error
}

// Subject is a backend under test, with what only its runner knows. Provider and Config are required.
type Subject struct {
	Provider contract.Provider
	// Config returns the configuration of a sandbox that does not exist and that no earlier call returned.
	Config func() contract.Config
	// Discard removes what remains of the sandbox that cfg names, its home included, whether or not it exists. nil where nothing can
	// remain after [contract.Environment.Cleanup] with remove.
	Discard func(ctx context.Context, cfg contract.Config) error
	// Vanish takes the container away from under env, as somebody else would who removes it. nil where that cannot be done: the cases that
	// need it must then be declared.
	Vanish func(ctx context.Context, env contract.Environment) error
	// Shared is a sandbox that may be used by one case after another; the zero value gives each case its own. [Share] makes one.
	Shared *Shared
	// Declared names the cases that this backend does not hold, each with the reason.
	Declared map[string]string
}

// Status is what became of a case.
type Status string

// The statuses of a case.
const (
	Pass     Status = "pass"
	Fail     Status = "fail"
	Declared Status = "declared" // it does not hold, and the subject says why
)

// Outcome is one case's result. Detail is what went wrong, or the declared reason; empty for Pass.
type Outcome struct {
	Name   string `json:"name"`
	Rule   string `json:"rule"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
}

// caseLimit bounds one case. It is for hangs: a case takes a second or two.
const caseLimit = 2 * time.Minute

// Cases returns all cases, in the order in which reading them makes sense. The slice is the caller's.
func Cases() []Case {
	return slices.Concat(
		attributeCases(), startCases(), homeCases(), directoryCases(), stateCases(), statusCases(), killCases(),
		inputCases(), outputCases(), terminalCases(), fileCases(), prefixCases(), dialCases(), lifeCases(), changeCases(), recreationCases(),
	)
}

// Run runs cases one after another and hands each outcome to report, from this goroutine.
//
// A declared case is run as well, and one that holds after all fails: an exception that is not needed any more would hide the next fault.
// So does a declaration that names no case, as an outcome of its own. When ctx ends, the cases that are left fail.
func Run(ctx context.Context, s Subject, cases []Case, report func(Outcome)) {
	for _, c := range cases {
		report(runOne(ctx, s, c))
	}
	known := map[string]bool{}
	for _, c := range Cases() {
		known[c.Name] = true
	}
	for name, reason := range s.Declared {
		if !known[name] {
			report(Outcome{Name: name, Status: Fail, Detail: "an exception is declared for it (" + reason + "), but there is no such case"})
		}
	}
}

func runOne(ctx context.Context, s Subject, c Case) (o Outcome) {
	o = Outcome{Name: c.Name, Rule: c.Rule, Status: Pass}
	ctx, cancel := context.WithTimeout(ctx, caseLimit)
	defer cancel()
	err := attempt(ctx, s, c)
	reason, declared := s.Declared[c.Name]
	switch {
	case declared && err != nil:
		o.Status, o.Detail = Declared, reason
	case declared:
		o.Status, o.Detail = Fail, "it holds, although an exception is declared: "+reason
	case err != nil:
		o.Status, o.Detail = Fail, err.Error()
	}
	return o
}

// attempt keeps a subject that panics from ending the run: it has failed that case.
func attempt(ctx context.Context, s Subject, c Case) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it panicked: %v", p)
		}
	}()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("not run: %w", err)
	}
	return c.Run(ctx, s)
}
