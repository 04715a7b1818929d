//go:build integration

package integration

import (
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// brokenImage is one of a real registry after something was done to it. {image} stands for its name.
func brokenImage(spoil func(*testRegistry, testImage)) func(*testing.T, *failure) []string {
	return func(t *testing.T, _ *failure) []string {
		t.Helper()
		r := newTestRegistry(t)
		image := r.image(1, mb/4)
		spoil(r, image)
		return []string{"{image}", image.ref}
	}
}

// chart is what a registry may have that is no image: here one that says so.
func chart(t *testing.T, _ *failure) []string {
	t.Helper()
	r := newTestRegistry(t)
	ref := r.host + "/" + freshName("pull") + ":1"
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(parsed, mutate.ConfigMediaType(empty.Image, "application/vnd.cncf.helm.config.v1+json")); err != nil {
		t.Fatal(err)
	}
	return []string{"{image}", ref}
}

// elsewhere serves a registry under an address that is not 127.0.0.0/8, to which alone daemons speak without a certificate they trust.
// {registry} stands for it.
func elsewhere(start func(*httptest.Server)) func(*testing.T, *failure) []string {
	return func(t *testing.T, _ *failure) []string {
		t.Helper()
		addresses, err := net.InterfaceAddrs()
		if err != nil {
			t.Fatal(err)
		}
		var address net.IP
		for _, a := range addresses {
			if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
				address = ip.IP
			}
		}
		if address == nil {
			t.Fatal("this machine has no address but its loopback: the daemon's bridge is one (docker network ls)")
		}
		listener, err := net.Listen("tcp", address.String()+":0")
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = silentLog() // of clients that do not trust it
		if err := server.Listener.Close(); err != nil {
			t.Fatal(err)
		}
		server.Listener = listener
		start(server)
		t.Cleanup(server.Close)
		return []string{"{registry}", strings.SplitN(server.URL, "://", 2)[1]}
	}
}

func pullRows() []badInput {
	const (
		cannot  = "the image {image} is not on this daemon and cannot be pulled: "
		cut     = "try again; if it stays, see what is between the daemon's machine and the registry (proxy, firewall)"
		trust   = "add its CA below /etc/docker/certs.d, or list it under insecure-registries in daemon.json, on the daemon's machine"
		pulling = "dockerbox: pulling {image}\n"
	)
	up, other := []string{"up", "--image", "{image}", "{box}"}, []string{"up", "--image", "{registry}/a/b:c", "{box}"}
	return []badInput{
		{
			name: "a pull that is cut", args: up, prepare: brokenImage(func(r *testRegistry, i testImage) { r.cuts[i.config] = slices.Repeat([]int64{10}, 20) }),
			notes: pulling, status: 125, err: cannot + "the connection to its registry was cut", hint: cut,
		},
		{
			name: "an image that is not what it says", args: up, prepare: brokenImage(func(r *testRegistry, i testImage) { r.spoil[i.layers[0]] = 20 }),
			notes: pulling, status: 125, err: cannot + "its registry sent something else than was asked for", hint: cut,
		},
		{
			name: "what is no image", args: up, prepare: chart,
			status: 125, err: cannot + "what its registry has of that name is no image, or not a whole one",
			hint: "choose another image or tag, or have whoever publishes it push it again",
		},
		{
			name: "a registry that nobody vouches for", args: other, prepare: elsewhere((*httptest.Server).StartTLS),
			status: 125, err: cannotPull + "the daemon does not trust its registry's certificate, or the registry has none", hint: trust,
		},
		{
			name: "a registry without a certificate", args: other, prepare: elsewhere((*httptest.Server).Start),
			status: 125, err: cannotPull + "the daemon does not trust its registry's certificate, or the registry has none", hint: trust,
		},
	}
}

func TestFailuresOfPulls(t *testing.T) { runFailures(t, pullRows()) }
