//go:build integration && slow

package integration

import (
	"path/filepath"
	"testing"
)

// The first calls of a session while its image is missing, through Hermes's own factory and tool.
func TestPullsInHermes(t *testing.T) {
	dir, err := filepath.Abs("pytests/pull")
	if err != nil {
		t.Fatal(err)
	}
	small := newTestRegistry(t)
	slow, failing, left := small.on(t), small.on(t), small.on(t)
	slow.slow(3 * mb / 4)
	failing.slow(mb / 2)
	left.slow(mb / 8)
	images := map[string]testImage{"SMALL": small.image(1, mb/4), "SLOW": slow.image(5, 6*mb), "FAILING": failing.image(1, 3*mb), "LEFT": left.image(2, 8*mb)}
	failing.spoil[images["FAILING"].layers[0]] = 1
	environ := []string{"PYTHONPATH=" + dir}
	for name, image := range images {
		environ = append(environ, "IMAGE_"+name+"="+image.ref)
	}
	runModule(t, newHermesHome(t, ""), dir, "test_pull", environ...)
	slow.fetchedOnce(images["SLOW"]) // however often it was asked for
	left.quiet()
	if image := images["LEFT"]; onDaemon(image.ref) {
		t.Error("a pull went on without its serve")
	}
}
