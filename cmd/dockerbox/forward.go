package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/hermes-dockerbox/dockerbox/contract"
)

type forwardOptions struct {
	address string
	json    bool
}

func newForward(std streams, open opener) *cobra.Command {
	var o forwardOptions
	c := &cobra.Command{
		Use:        "forward [OPTIONS] NAME [LOCAL:]REMOTE...",
		Short:      "Reach ports of a sandbox from this machine",
		SuggestFor: []string{"port", "port-forward", "publish", "tunnel", "proxy"},
		Long: `Listen on ports of this machine and carry each connection to a port of the sandbox
NAME, until interrupted. Nothing is published: connections go the way commands do, to a
remote daemon too, and what listens in the sandbox sees them come from its own loopback.

REMOTE alone is the same port on both sides, 8080:80 is port 80 of the sandbox on port
8080 here, and 0:80 takes a port that is free. When all listen, each is a line on stdout.

What listens in the sandbox may come and go, and so may the sandbox: a connection that
finds nothing is closed. TCP alone is carried.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return nil
			}
			return &usageError{problem: "forward needs the name of a sandbox, and a port"}
		},
		Annotations: map[string]string{exitCodes: "  0    it was interrupted, which is how it is meant to end\n" + exitUsage + "\n" + exitBackend},
		RunE: func(c *cobra.Command, args []string) error {
			mappings, err := parseMappings(o.address, args[1:])
			if err != nil {
				return err
			}
			return runForward(c.Context(), std, open, args[0], mappings, o.json)
		},
	}
	f := c.Flags()
	f.StringVar(&o.address, "address", "127.0.0.1", "`IP` of this machine to listen on; with another than a loopback's, others can connect")
	f.BoolVar(&o.json, "json", false, "print JSON, one line when all listen")
	return c
}

// mapping is a port of this machine that leads to one of the sandbox. A local port of 0 is any.
type mapping struct {
	local  netip.AddrPort
	remote uint16
}

// parseMappings understands the words behind NAME.
func parseMappings(address string, words []string) ([]mapping, error) {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return nil, &usageError{problem: fmt.Sprintf("--address: %.40q must be an IP address, such as 127.0.0.1 or ::1", address)}
	}
	seen := map[uint16]bool{}
	all := make([]mapping, len(words))
	for i, word := range words {
		local, remote, two := strings.Cut(word, ":")
		if !two {
			local, remote = word, word
		}
		if local == "" {
			local = "0"
		}
		from, fromOK := parsePort(local)
		to, toOK := parsePort(remote)
		if !fromOK || !toOK || to == 0 {
			return nil, &usageError{problem: fmt.Sprintf("%.40q must be a port from 1 to 65535, or two with a colon: the one here, where 0 is any, and the sandbox's", word)}
		}
		if seen[from] && from != 0 {
			return nil, &usageError{problem: fmt.Sprintf("port %d of this machine is given twice", from)}
		}
		seen[from] = true
		all[i] = mapping{netip.AddrPortFrom(ip, from), to}
	}
	return all, nil
}

// parsePort reads digits alone: a sign or a name is no port.
func parsePort(s string) (port uint16, ok bool) {
	if s == "" || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	at, err := netip.ParseAddrPort("0.0.0.0:" + s)
	return at.Port(), err == nil
}

// listening is a mapping at work.
type listening struct {
	*net.TCPListener
	remote uint16
}

// listenAll opens all of them or none.
func listenAll(mappings []mapping) (all []listening, err error) {
	for _, m := range mappings {
		l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(m.local))
		if err != nil {
			return nil, errors.Join(cannotListen(m, err), closeAll(all))
		}
		all = append(all, listening{l, m.remote})
	}
	return all, nil
}

func closeAll(all []listening) (err error) {
	for _, l := range all {
		err = errors.Join(err, l.Close())
	}
	return err
}

// cannotListen says why a port of this machine is not to be had.
func cannotListen(m mapping, err error) error {
	b := &contract.BackendError{
		Reason: fmt.Sprintf("this machine cannot listen on %s: %s", m.local, networkCause(err)),
		Hint:   "give a port before the colon that it can listen on, such as 8080:80", Err: err,
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		b.Reason = fmt.Sprintf("port %d of %s is in use on this machine", m.local.Port(), m.local.Addr())
		b.Hint = fmt.Sprintf("0:%d takes a port that is free; another before the colon takes that one", m.remote)
	case errors.Is(err, syscall.EACCES):
		b.Reason = fmt.Sprintf("port %d of this machine is not for this user", m.local.Port())
		b.Hint = fmt.Sprintf("ports below 1024 often are for root alone: 8080:%d takes another, 0:%d any that is free", m.remote, m.remote)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		b.Reason = fmt.Sprintf("this machine has no address %s", m.local.Addr())
		b.Hint = "without --address it listens on 127.0.0.1"
	}
	return b
}

// networkCause is why a system call failed, without the address that the message is about anyway.
func networkCause(err error) string {
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err.Error()
	}
	return err.Error()
}

// forwardAnswer is what forward --json prints.
type forwardAnswer struct {
	Schema   int           `json:"schema"`
	Forwards []forwardPort `json:"forwards"`
}

type forwardPort struct {
	Local  string `json:"local"`
	Remote uint16 `json:"remote"`
}

// runForward listens before it looks for the sandbox: a port that cannot be had is known at once, and no sandbox was started for it.
func runForward(ctx context.Context, std streams, open opener, name string, mappings []mapping, asJSON bool) (err error) {
	all, err := listenAll(mappings)
	if err != nil {
		return err
	}
	p, err := open()
	if err != nil {
		return errors.Join(err, closeAll(all))
	}
	env, err := p.Follow(ctx, name)
	if err != nil {
		return errors.Join(err, closeAll(all), p.Close())
	}
	dialer, ok := env.(contract.Dialer)
	if !ok {
		return errors.Join(fmt.Errorf("%T connects to no ports", env), closeAll(all), p.Close())
	}
	if err := sayForwards(std, name, all, asJSON); err != nil {
		return errors.Join(err, closeAll(all), p.Close())
	}
	c := newCarrier(ctx, dialer, name, std.err)
	failed := make(chan error, len(all))
	var accepting sync.WaitGroup
	for _, l := range all {
		accepting.Go(func() { failed <- c.accept(l) })
	}
	select {
	case <-ctx.Done(): // that was asked for
	case err = <-failed:
	}
	c.cancel()
	err = errors.Join(err, closeAll(all))
	accepting.Wait()
	c.end()
	return errors.Join(err, p.Close())
}

func sayForwards(std streams, name string, all []listening, asJSON bool) error {
	answer, text := forwardAnswer{Schema: schema}, ""
	for _, l := range all {
		local := l.Addr().String()
		answer.Forwards = append(answer.Forwards, forwardPort{local, l.remote})
		text += fmt.Sprintf("%s -> %s:%d\n", local, name, l.remote)
		if at, err := netip.ParseAddrPort(local); err == nil && !at.Addr().IsLoopback() {
			note(std.err, fmt.Sprintf("whoever reaches %s of this machine can connect", local))
		}
	}
	if asJSON {
		return printJSON(std.out, answer)
	}
	return say(std.out, "%s", text)
}
