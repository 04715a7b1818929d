package main

import (
	"encoding/json"
	"io"

	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// drawing is done on a terminal by what draws docker's: each message with an id and a progress has a line, which the next one of that id
// replaces.
type drawing struct {
	pipe  *io.PipeWriter
	drawn chan struct{}
}

func newDrawing(w io.Writer, s screen) *drawing {
	messages, pipe := io.Pipe()
	d := &drawing{pipe: pipe, drawn: make(chan struct{})}
	go func() {
		defer close(d.drawn)
		_ = messages.CloseWithError(jsonmessage.DisplayJSONMessagesStream(messages, w, s.fd, s.there, nil)) // or nobody would take the next one
	}()
	return d
}

// show draws one message. What it says comes from a daemon and its registries, and is kept from commanding the terminal.
func (d *drawing) show(m jsonmessage.JSONMessage) {
	m.ID, m.Status = oneLine(m.ID), oneLine(m.Status)
	_ = json.NewEncoder(d.pipe).Encode(m) // what cannot be drawn is lost, as progress may be
}

func (d *drawing) end() {
	_ = d.pipe.Close() // always nil
	<-d.drawn
}

// layerPull shows a pull as docker does: a line with a bar for each layer.
type layerPull struct {
	*drawing
	layers map[string]bool
	most   int // layers that have a line; those above it share one, for a line that left the screen cannot be drawn again
}

func newLayerPull(w io.Writer, s screen, image string) *layerPull {
	const besides = 3 // the image's line, the common one, and the cursor's
	_, rows := s.size()
	p := &layerPull{drawing: newDrawing(w, s), layers: map[string]bool{}, most: max(1, rows-besides)}
	p.show(jsonmessage.JSONMessage{Status: "dockerbox: pulling " + image})
	return p
}

func (l *layerPull) step(p provider.Progress) {
	switch {
	case p.ID == "" && p.Status == "", p.ID == "" && len(l.layers) == 0: // our own end, and the daemon's name for the image
		return
	case p.ID == "":
		l.show(jsonmessage.JSONMessage{Status: p.Status})
		return
	case !l.layers[p.ID] && len(l.layers) >= l.most:
		l.show(jsonmessage.JSONMessage{ID: "all layers", Status: p.Whole.String(), Progress: &jsonmessage.JSONProgress{}})
		return
	}
	l.layers[p.ID] = true
	l.show(jsonmessage.JSONMessage{ID: p.ID, Status: p.Status, Progress: &jsonmessage.JSONProgress{Current: p.Current, Total: p.Total}})
}
