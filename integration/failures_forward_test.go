//go:build integration

package integration

import (
	"net"
	"strconv"
	"testing"
)

const (
	forwardHelp = "dockerbox forward --help shows what it takes"
	noPort      = `must be a port from 1 to 65535, or two with a colon: the one here, where 0 is any, and the sandbox's`
)

// inUse is {port}, a port of this machine that somebody else listens on.
func inUse(t *testing.T, _ *failure) []string {
	t.Helper()
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // nothing was accepted
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return []string{"{port}", port}
}

// withoutPrivileges has the row run by a user who may not listen on every port.
func withoutPrivileges(t *testing.T, f *failure) []string {
	t.Helper()
	needRoot(t)
	f.edit = f.asNobody(t)
	return nil
}

// forwardRows are about ports. None of them leaves anything that listens, for each row's process is gone.
func forwardRows() []badInput {
	port := func(name, word string) badInput {
		return usage(name, strconv.Quote(word)+" "+noPort, forwardHelp, "forward", "b", word)
	}
	return []badInput{
		usage("forward without a name", "forward needs the name of a sandbox, and a port", forwardHelp, "forward"),
		usage("forward without a port", "forward needs the name of a sandbox, and a port", forwardHelp, "forward", "b"),
		port("forward of a name", "http"), port("forward of port 0", "0"), port("forward to port 0", "80:0"), port("forward beyond the ports", "65536"),
		port("forward from beyond the ports", "65536:80"), port("forward of an empty word", ""), port("forward of no remote port", "80:"),
		port("forward of a negative port", "8080:-1"), port("forward with an address in it", "127.0.0.1:8080:80"), port("forward of UDP", "53/udp"),
		usage("forward of one port twice", "port 8080 of this machine is given twice", forwardHelp, "forward", "b", "8080:80", "8080:81"),
		usage("forward on a name", `--address: "localhost" must be an IP address, such as 127.0.0.1 or ::1`, forwardHelp, "forward", "--address", "localhost", "b", "80"),

		{name: "forward on a port in use", args: []string{"forward", "{box}", "0:81", "{port}:80"}, prepare: inUse, status: 125, err: "port {port} of 127.0.0.1 is in use on this machine", hint: "0:80 takes a port that is free; another before the colon takes that one"},
		{name: "forward on a privileged port", args: []string{"forward", "{box}", "80"}, prepare: withoutPrivileges, status: 125, err: "port 80 of this machine is not for this user", hint: "ports below 1024 often are for root alone: 8080:80 takes another, 0:80 any that is free"},
		{name: "forward on another machine's address", args: []string{"forward", "--address", "192.0.2.1", "{box}", "0:80"}, status: 125, err: "this machine has no address 192.0.2.1", hint: "without --address it listens on 127.0.0.1"},
		{name: "forward of nothing", args: []string{"forward", "{box}", "0:80"}, status: 125, err: `there is no sandbox "{box}"`, hint: missingBox},
		{name: "forward without a daemon", args: []string{"forward", "{box}", "0:80"}, environ: []string{"DOCKER_HOST=unix:///nonexistent/docker.sock"}, status: 125, err: "the docker daemon at unix:///nonexistent/docker.sock does not answer", hint: "start it (systemctl start docker, or make docker in the repository), or point DOCKER_HOST or --context at the right one"},
		{name: "forward of a paused one", args: []string{"forward", "{box}", "0:80"}, prepare: made("pause", "{container}"), status: 125, err: `sandbox "{box}" is paused`, hint: unpause},
		{name: "forward onto a full disk", args: []string{"forward", "{box}", "0:80"}, prepare: both(made(), writingTo("/dev/full")), status: 125, err: "the answer could not be written: " + noRoom, hint: seeOutput},
	}
}

func TestFailuresOfForwards(t *testing.T) { runFailures(t, forwardRows()) }
