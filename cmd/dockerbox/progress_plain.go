package main

import (
	"fmt"
	"io"
	"time"

	"github.com/docker/go-units"

	"github.com/hermes-dockerbox/dockerbox/provider"
)

// linePull shows a pull in one line that is drawn again and again.
type linePull struct {
	w      io.Writer
	screen screen
	image  string
}

func (l *linePull) step(p provider.Progress) {
	columns, _ := l.screen.size()
	_, _ = fmt.Fprintf(l.w, "\r\x1b[K%s", abridge(oneLine(doing(p.Whole)+" "+p.Whole.String()+" "+l.image), columns-1))
}

func (l *linePull) end() { _, _ = fmt.Fprint(l.w, "\r\x1b[K") }

func doing(p provider.Pulled) string {
	if p.Unpacking {
		return "unpacking"
	}
	return "pulling"
}

// plainPull shows a pull where nothing can be drawn twice, such as in the log of a build: its beginning, a line whenever there is news enough,
// and its end.
type plainPull struct {
	w     io.Writer
	now   func() time.Time
	image string

	began, said time.Time
	far         provider.Pulled // as it was said last
}

// What is news of a pull: so much more of it, but not sooner than that; or any more after a while, so that people see that it lives.
const (
	newsPercent = 10
	newsPause   = 2 * time.Second
	newsAnyway  = 30 * time.Second
)

func newPlainPull(w io.Writer, image string) *plainPull {
	p := &plainPull{w: w, now: time.Now, image: image}
	p.begin()
	return p
}

func (l *plainPull) begin() {
	l.began = l.now()
	l.said = l.began
	note(l.w, "pulling "+l.image)
}

func (l *plainPull) step(p provider.Progress) {
	far, now := p.Whole, l.now()
	if far.Done {
		size := ""
		if far.Total > 0 {
			size = units.HumanSize(float64(far.Total)) + " in "
		}
		note(l.w, fmt.Sprintf("pulled %s: %s%.0f s", l.image, size, now.Sub(l.began).Seconds()))
		return
	}
	if far.Retrying != l.far.Retrying {
		if l.far.Retrying = far.Retrying; far.Retrying {
			l.said = now
			note(l.w, fmt.Sprintf("pulling %s: the connection to its registry was cut at %s and is made again", l.image, far))
			return
		}
	}
	more := far.Percent - l.far.Percent
	if far.Unpacking != l.far.Unpacking { // the figure begins anew
		more = far.Percent
	}
	since := now.Sub(l.said)
	if more >= newsPercent && since >= newsPause || more > 0 && since >= newsAnyway {
		note(l.w, fmt.Sprintf("%s %s: %s", doing(far), l.image, far))
		l.said, l.far = now, far
	}
}

func (l *plainPull) end() {}
