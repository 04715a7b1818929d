//go:build integration

package integration

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os/exec"
	pathpkg "path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	ggcr "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// testRegistry is a real registry, served on 127.0.0.1, with a bad line before it. Docker takes plain HTTP from there.
type testRegistry struct {
	t    *testing.T
	host string
	back http.Handler

	mu    sync.Mutex
	rate  int64               // bytes per second of each connection; 0: as fast as it goes
	cuts  map[string][]int64  // by blob: after how many bytes its next answers break off
	spoil map[string]int      // blobs of which that many answers have a wrong byte
	given map[string]int64    // bytes of each blob that went out
	asked map[string][]string // the Range of each request for it
	left  int                 // requests under way
	idle  chan struct{}       // told when one has ended
}

func newTestRegistry(t *testing.T) *testRegistry {
	t.Helper()
	r := &testRegistry{
		t: t, back: ggcr.New(ggcr.Logger(silentLog())), cuts: map[string][]int64{}, spoil: map[string]int{},
		given: map[string]int64{}, asked: map[string][]string{}, idle: make(chan struct{}, 1),
	}
	server := httptest.NewServer(r)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	r.host = strings.TrimPrefix(server.URL, "http://")
	return r
}

func silentLog() *log.Logger { return log.New(io.Discard, "", 0) }

// ServeHTTP is the line: slow, cut, counted.
func (r *testRegistry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	blob := ""
	if request.Method == http.MethodGet && pathpkg.Base(pathpkg.Dir(request.URL.Path)) == "blobs" {
		blob = pathpkg.Base(request.URL.Path)
	}
	l := &line{ResponseWriter: w, registry: r, blob: blob, most: -1}
	r.mu.Lock()
	r.left++
	if blob != "" {
		r.asked[blob] = append(r.asked[blob], request.Header.Get("Range"))
		if cuts := r.cuts[blob]; len(cuts) > 0 {
			l.most, r.cuts[blob] = cuts[0], cuts[1:]
		}
		if r.spoil[blob] > 0 {
			r.spoil[blob]--
			l.spoilt = true
		}
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		r.left--
		r.mu.Unlock()
		select {
		case r.idle <- struct{}{}:
		default:
		}
	}()
	// This registry takes no range without an end, which is what docker asks for.
	if from, open := strings.CutSuffix(request.Header.Get("Range"), "-"); open {
		if size, ok := r.size(request.URL.Path); ok {
			request.Header.Set("Range", fmt.Sprintf("%s-%d", from, size-1))
		}
	}
	r.back.ServeHTTP(l, request)
	if l.most == 0 {
		panic(http.ErrAbortHandler)
	}
}

// size asks the registry for a blob's.
func (r *testRegistry) size(path string) (int64, bool) {
	answer := httptest.NewRecorder()
	r.back.ServeHTTP(answer, httptest.NewRequest(http.MethodHead, path, nil))
	return answer.Result().ContentLength, answer.Code == http.StatusOK
}

// line is one answer on its way.
type line struct {
	http.ResponseWriter
	registry *testRegistry
	blob     string
	most     int64 // bytes until it breaks; negative: it does not
	spoilt   bool
}

var errCut = errors.New("the line is cut")

func (l *line) Write(b []byte) (int, error) {
	const piece = 32 << 10
	done := 0
	for len(b) > 0 {
		n := min(len(b), piece)
		if l.most >= 0 {
			n = int(min(int64(n), l.most))
		}
		if n == 0 {
			return done, errCut
		}
		part := b[:n]
		if l.spoilt {
			part = append([]byte{^b[0]}, b[1:n]...)
		}
		n, err := l.ResponseWriter.Write(part)
		rate := l.registry.count(l.blob, n)
		done, b = done+n, b[n:]
		if l.most >= 0 {
			l.most -= int64(n)
		}
		if err != nil {
			return done, err
		}
		if rate > 0 {
			time.Sleep(time.Duration(n) * time.Second / time.Duration(rate)) // that is what a slow line does
		}
	}
	return done, nil
}

// count takes note of bytes that went out, and returns how fast they may.
func (r *testRegistry) count(blob string, n int) (rate int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.given[blob] += int64(n)
	return r.rate
}

// slow sets how many bytes a second each connection has.
func (r *testRegistry) slow(rate int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rate = rate
}

// sent is how many bytes of a blob went out, and with which ranges they were asked for.
func (r *testRegistry) sent(blob string) (bytes int64, ranges []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.given[blob], r.asked[blob]
}

// quiet waits until the daemon has let go of every connection.
func (r *testRegistry) quiet() {
	r.t.Helper()
	limit := time.After(30 * time.Second)
	for {
		r.mu.Lock()
		left := r.left
		r.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-r.idle:
		case <-limit:
			r.t.Fatalf("%d requests of the daemon go on", left)
		}
	}
}

// testImage is an image in the registry that nobody has pulled: the tests' base, which has bash and which the daemon has, and layers that
// nothing can make smaller.
type testImage struct {
	ref    string
	config string   // digest
	layers []string // digests of those the daemon does not have
	size   int64    // of these
}

// image makes one of so many layers of so many bytes each.
func (r *testRegistry) image(layers int, size int64) testImage {
	r.t.Helper()
	base := r.base()
	made := testImage{ref: r.host + "/" + freshName("pull") + ":1"}
	for range layers {
		layer, err := random.Layer(size, types.DockerLayer)
		if err != nil {
			r.t.Fatal(err)
		}
		digest, err := layer.Digest()
		if err != nil {
			r.t.Fatal(err)
		}
		compressed, err := layer.Size()
		if err != nil {
			r.t.Fatal(err)
		}
		made.layers, made.size = append(made.layers, digest.String()), made.size+compressed
		if base, err = mutate.AppendLayers(base, layer); err != nil {
			r.t.Fatal(err)
		}
	}
	configuration, err := base.ConfigName()
	if err != nil {
		r.t.Fatal(err)
	}
	made.config = configuration.String()
	ref, err := name.ParseReference(made.ref)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := remote.Write(ref, base); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { removeImage(r.t, made.ref) })
	return made
}

// base is the tests' base image, as the daemon pushes it: so it knows its layer when it meets it in a registry.
func (r *testRegistry) base() v1.Image {
	r.t.Helper()
	tag := r.host + "/base:1"
	ref, err := name.ParseReference(tag)
	if err != nil {
		r.t.Fatal(err)
	}
	pushed, err := remote.Image(ref)
	if err == nil {
		return pushed
	}
	for _, words := range [][]string{{"tag", "dockerbox/base:trixie", tag}, {"push", "-q", tag}, {"rmi", tag}} {
		if out, err := exec.Command("docker", words...).CombinedOutput(); err != nil {
			r.t.Fatalf("docker %q: %v\n%s", words, err, out)
		}
	}
	if pushed, err = remote.Image(ref); err != nil {
		r.t.Fatal(err)
	}
	return pushed
}

// removeImage takes an image away that may be there.
func removeImage(t *testing.T, ref string) {
	t.Helper()
	if out, err := exec.Command("docker", "rmi", "-f", ref).CombinedOutput(); err != nil && !strings.Contains(string(out), "No such image") {
		t.Errorf("remove %s: %v\n%s", ref, err, out)
	}
}

// onDaemon reports whether the daemon has an image.
func onDaemon(ref string) bool { return exec.Command("docker", "image", "inspect", ref).Run() == nil }
