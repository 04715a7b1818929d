package desktop

import (
	"fmt"
	"image"
	"regexp"
	"strconv"
	"strings"

	"github.com/hermes-dockerbox/dockerbox/contract"
	"github.com/hermes-dockerbox/dockerbox/internal/rfb"
)

// Options shape a screen that is started. The zero value is right.
type Options struct {
	// Profile is the Hermes profile whose screen it is; empty means "default". A screen of another profile that lives is taken all the
	// same.
	Profile string
	// Geometry is the size in pixels, such as 1440x900, which is also what empty means. A screen that lives keeps the size it has.
	Geometry string
}

const (
	defaultProfile  = "default"
	defaultGeometry = "1440x900"
)

var (
	isProfile  = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,63}$`).MatchString
	isGeometry = regexp.MustCompile(`^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$`).MatchString
)

func (o Options) check() error {
	const hint = "a geometry is WIDTHxHEIGHT in pixels, such as 1440x900"
	if !isProfile(o.Profile) {
		return &contract.BackendError{
			Reason: fmt.Sprintf("%.80q is not the name of a Hermes profile", o.Profile),
			Hint:   "a profile has at most 64 letters, digits, \".\", \"_\" and \"-\"",
		}
	}
	if !isGeometry(o.Geometry) {
		return &contract.BackendError{Reason: fmt.Sprintf("%.40q is not the size of a screen", o.Geometry), Hint: hint}
	}
	size, ok := parseSize(o.Geometry, "x")
	const smallest, largest = 200, 1 << 14
	if !ok || min(size.X, size.Y) < smallest || max(size.X, size.Y) > largest || size.X*size.Y > rfb.MaxPixels {
		return &contract.BackendError{
			Reason: fmt.Sprintf("a screen of %s pixels cannot be had: each side has from %d to %d, and all together are at most %d million", o.Geometry, smallest, largest, rfb.MaxPixels>>20),
			Hint:   hint,
		}
	}
	return nil
}

func parseSize(s, between string) (image.Point, bool) {
	width, height, ok := strings.Cut(s, between)
	x, errX := strconv.Atoi(strings.TrimSpace(width))
	y, errY := strconv.Atoi(strings.TrimSpace(height))
	return image.Pt(x, y), ok && errX == nil && errY == nil && x > 0 && y > 0
}

// parseRect reads x, y, width and height.
func parseRect(s string) (image.Rectangle, bool) {
	const most = 1 << 16
	var n [4]int
	words := strings.Fields(s)
	if len(words) != len(n) {
		return image.Rectangle{}, false
	}
	for i, word := range words {
		var err error
		if n[i], err = strconv.Atoi(word); err != nil || n[i] < -most || n[i] > most {
			return image.Rectangle{}, false
		}
	}
	return image.Rect(n[0], n[1], n[0]+n[2], n[1]+n[3]), n[2] > 0 && n[3] > 0
}
