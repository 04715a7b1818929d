package provider

import (
	"strings"

	"github.com/docker/docker/pkg/jsonmessage"
)

// meter makes one figure of what a daemon says of each layer. Not safe for concurrent use.
type meter struct {
	layers map[string]*pulledLayer
	// What was shown last: a figure that goes back looks like a fault, and a layer of which the daemon begins to speak only now makes it.
	percent   int
	unpacking bool
}

// pulledLayer is a layer that the daemon did not have. Its numbers are bytes of the compressed layer; size 0 is not known.
type pulledLayer struct {
	size, came, unpacked int64
	here                 bool // all of it
	retrying             bool
}

func newMeter() *meter { return &meter{layers: map[string]*pulledLayer{}} }

// Docker's words for what happens to a layer.
const (
	statusAnnounced  = "Pulling fs layer"
	statusWaiting    = "Waiting"
	statusLoading    = "Downloading"
	statusVerifying  = "Verifying Checksum"
	statusLoaded     = "Download complete"
	statusExtracting = "Extracting"
	statusDone       = "Pull complete"
	statusThere      = "Already exists"
	statusRetrying   = "Retrying in "
)

// take reads one message.
func (m *meter) take(message jsonmessage.JSONMessage) Progress {
	step := Progress{Status: message.Status}
	if message.Progress != nil { // else the id is the tag: the message is about the whole image
		step.ID = message.ID
		if message.Progress.Units == "" { // which are bytes; newer daemons count seconds while they unpack
			step.Current, step.Total = max(0, message.Progress.Current), max(0, message.Progress.Total)
		}
	}
	if step.ID != "" {
		m.layer(step)
	}
	step.Whole = m.whole()
	return step
}

func (m *meter) layer(step Progress) {
	l := m.layers[step.ID]
	if l == nil {
		l = &pulledLayer{}
		m.layers[step.ID] = l
	}
	l.retrying = strings.HasPrefix(step.Status, statusRetrying)
	switch step.Status {
	case statusAnnounced, statusWaiting:
	case statusLoading:
		l.size = max(l.size, step.Total)
		l.came = step.Current
		if step.Total > 0 {
			l.came += l.size - step.Total // after a cut the daemon counts from where it goes on
		}
	case statusVerifying, statusLoaded:
		l.came, l.here = l.size, true
	case statusExtracting:
		l.size = max(l.size, step.Total)
		l.came, l.here, l.unpacked = l.size, true, step.Current
	case statusDone:
		l.came, l.here, l.unpacked = l.size, true, l.size
	case statusThere:
		delete(m.layers, step.ID)
	}
}

// whole sums up. It remembers what it said, so that the next figure is no lower.
func (m *meter) whole() Pulled {
	var (
		p                        Pulled
		known, unknown, here     int64
		unpacked, came, expected int64
	)
	for _, l := range m.layers {
		p.Retrying = p.Retrying || l.retrying
		switch {
		case l.size > 0:
			known++
		case !l.here:
			unknown++
		}
		if l.here {
			here++
		}
		expected, came, unpacked = expected+l.size, came+l.came, unpacked+l.unpacked
	}
	p.Total, p.Bytes = expected, came
	if unknown > 0 && known > 0 {
		p.Total += unknown * (expected / known)
		p.Estimated = true
	}
	if p.Unpacking = len(m.layers) > 0 && here == int64(len(m.layers)); p.Unpacking {
		p.Bytes = unpacked
	}
	if p.Unpacking != m.unpacking {
		m.unpacking, m.percent = p.Unpacking, 0
	}
	if p.Total > 0 {
		const all = 100
		m.percent = max(m.percent, int(all*p.Bytes/p.Total))
	}
	p.Percent = m.percent
	return p
}
