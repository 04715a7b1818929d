package provider

import (
	"testing"
	"time"

	"github.com/docker/docker/pkg/jsonmessage"
)

// layerSays is a message about a layer.
func layerSays(id, status string, current, total int64) jsonmessage.JSONMessage {
	return jsonmessage.JSONMessage{ID: id, Status: status, Progress: &jsonmessage.JSONProgress{Current: current, Total: total}}
}

// The messages are those of Docker 20.10 for an image of which it has the first layer.
func TestAPullIsOneFigure(t *testing.T) {
	m := newMeter()
	for i, step := range []struct {
		message jsonmessage.JSONMessage
		want    string
	}{
		{jsonmessage.JSONMessage{ID: "latest", Status: "Pulling from a/b"}, "0 %"},
		{layerSays("base", statusThere, 0, 0), "0 %"},
		{layerSays("a", statusAnnounced, 0, 0), "0 %"},
		{layerSays("b", statusAnnounced, 0, 0), "0 %"},
		{layerSays("c", statusAnnounced, 0, 0), "0 %"},
		{layerSays("c", statusWaiting, 0, 0), "0 %"},
		{layerSays("a", statusLoading, 10e6, 100e6), "3 % (10 of about 300 MB)"},
		{layerSays("b", statusLoading, 20e6, 50e6), "13 % (30 of about 225 MB)"},
		{layerSays("a", statusVerifying, 0, 0), "53 % (120 of about 225 MB)"},
		{layerSays("a", statusLoaded, 0, 0), "53 % (120 of about 225 MB)"},
		{layerSays("c", statusLoading, 0, 250e6), "53 % (120 of 400 MB)"}, // the figure waits for the bytes
		{layerSays("a", statusExtracting, 100e6, 100e6), "53 % (120 of 400 MB)"},
		{layerSays("c", statusLoading, 125e6, 250e6), "61 % (245 of 400 MB)"},
		{layerSays("c", "Retrying in 5 seconds", 0, 0), "61 % (245 of 400 MB)"},
		{layerSays("c", statusLoading, 5e6, 125e6), "62 % (250 of 400 MB)"}, // it goes on where it was cut
		{layerSays("c", statusLoaded, 0, 0), "92 % (370 of 400 MB)"},
		{layerSays("a", statusDone, 0, 0), "92 % (370 of 400 MB)"},
		{layerSays("b", statusLoaded, 0, 0), "25 % (100 of 400 MB)"}, // of what is unpacked
		{layerSays("b", statusExtracting, 25e6, 50e6), "31 % (125 of 400 MB)"},
		{layerSays("b", statusDone, 0, 0), "37 % (150 of 400 MB)"},
		{layerSays("c", statusDone, 0, 0), "100 % (400 of 400 MB)"},
		{jsonmessage.JSONMessage{Status: "Status: Downloaded newer image for a/b"}, "100 % (400 of 400 MB)"},
	} {
		got := m.take(step.message).Whole
		if got.String() != step.want {
			t.Errorf("step %d, %s %s: %q, want %q", i, step.message.ID, step.message.Status, got, step.want)
		}
		if want := step.message.Status == "Retrying in 5 seconds"; got.Retrying != want {
			t.Errorf("step %d: retrying is %v", i, got.Retrying)
		}
	}
	if p := m.whole(); !p.Unpacking || p.Estimated || p.Bytes != p.Total {
		t.Errorf("at the end %+v", p)
	}
}

// Layers that are too small to be spoken of, and daemons that count something else than bytes.
func TestAPullWithoutFigures(t *testing.T) {
	m := newMeter()
	m.take(layerSays("a", statusAnnounced, 0, 0))
	m.take(layerSays("a", statusLoaded, 0, 0))
	seconds := layerSays("a", statusExtracting, 7, 0)
	seconds.Progress.Units = "s"
	if p := m.take(seconds).Whole; p.String() != "0 %" || !p.Unpacking {
		t.Errorf("%q %+v", p, p)
	}
	if p := m.take(layerSays("a", statusLoading, -1, -1)).Whole; p.String() != "0 %" {
		t.Errorf("%q", p)
	}
}

func TestWhatIsSaidOfAPull(t *testing.T) {
	for want, p := range map[string]Pulled{
		"the image x is being pulled: 0 %":                    {},
		"the image x is being pulled: 37 % (150 of 404 MB)":   {Percent: 37, Bytes: 150e6, Total: 404e6},
		"the image x is being unpacked: 50 % (0.6 of 1.2 MB)": {Percent: 50, Bytes: 600e3, Total: 1200e3, Unpacking: true},
		"the image x is being pulled: 2 % (1.0 of about 9.9 MB); the connection to its registry was cut and is made again": {
			Percent: 2, Bytes: 1e6, Total: 9.9e6, Estimated: true, Retrying: true,
		},
	} {
		if got := p.sentence("x"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWhenAPullWillBeThere(t *testing.T) {
	half := Pulled{Bytes: 50, Total: 100}
	for _, tc := range []struct {
		p    Pulled
		took time.Duration
		want string
	}{
		{Pulled{}, time.Minute, "in a moment"},
		{half, time.Second, "in a moment"},
		{Pulled{Bytes: 50, Total: 100, Unpacking: true}, time.Minute, "in a moment"},
		{Pulled{Bytes: 100, Total: 100}, time.Minute, "in a moment"},
		{half, 4 * time.Second, "in about 10 s"},
		{half, 45 * time.Second, "in about 50 s"},
		{half, 5 * time.Minute, "in about 5 min"},
	} {
		if got := tc.p.left(tc.took); got != tc.want {
			t.Errorf("%+v after %s: %q, want %q", tc.p, tc.took, got, tc.want)
		}
	}
}

func TestOneImageOfManyNames(t *testing.T) {
	for a, b := range map[string]string{"debian": "docker.io/library/debian:latest", "r.example:5000/a/b": "r.example:5000/a/b:latest", "a/b:1": "index.docker.io/a/b:1"} {
		if fullName(a) != fullName(b) {
			t.Errorf("%s and %s are two images", a, b)
		}
	}
	if fullName("a/b:1") == fullName("a/b:2") || fullName("No Such") != "No Such" {
		t.Error("two images are one, or what is no name became one")
	}
}
