package rfb

import (
	"errors"
	"fmt"
	"image"
	"io"
)

// everything is a part that no screen is larger than.
var everything = image.Rectangle{Max: image.Pt(1<<16, 1<<16)}

// Frame asks for the whole screen and returns it, every pixel opaque. When the screen changes its size meanwhile it is the new one.
func (c *Conn) Frame() (*image.RGBA, error) { return c.Part(everything) }

// Part is Frame for what of the screen lies in part. The picture has the screen's coordinates; it is empty when nothing of it does.
func (c *Conn) Part(part image.Rectangle) (*image.RGBA, error) {
	f, err := c.frame(part)
	if err != nil {
		return nil, fmt.Errorf("rfb frame: %w", endMeansEarly(err))
	}
	return f.image, nil
}

// Await waits until something within part has changed since it was last asked for.
func (c *Conn) Await(part image.Rectangle) error {
	f, err := c.request(part, true)
	for before := f.changes; err == nil && f.changes == before; {
		_, err = c.message(f)
	}
	if err != nil {
		return fmt.Errorf("rfb await: %w", endMeansEarly(err))
	}
	return nil
}

// frame is a picture that is being filled.
type frame struct {
	image   *image.RGBA // of the part that was asked for, in the screen's coordinates
	came    []row       // of each line, what has come
	left    int         // pixels that have not
	budget  int         // pixels and messages the server may still send before this is taken for a flood
	changes int         // updates that came
}

// row is which pixels of a line have come, one bit each.
type row []uint64

// What a server may send for one picture: pixels in screens full, messages without any, and times it says its size.
const (
	mostScreens  = 8
	mostMessages = 4096
	mostRequests = 8
)

func (c *Conn) frame(part image.Rectangle) (*frame, error) {
	for n := range mostRequests {
		f, err := c.request(part, n > 0)
		anew := false
		for err == nil && f.left > 0 && !anew {
			anew, err = c.message(f)
		}
		if err != nil || !anew {
			return f, err
		}
	}
	return nil, errors.New("the server's screen does not keep its size")
}

var errFlood = errors.New("the server sends more than the screen it was asked for")

// request asks for every pixel of a part of the screen, or again for what the last request has not brought. A server that says its size
// in answer to each full request, as Xvnc does, would never come to the pixels.
func (c *Conn) request(part image.Rectangle, again bool) (*frame, error) {
	f := newFrame(part.Intersect(image.Rectangle{Max: c.size}))
	at, incremental := f.image.Rect, uint8(0)
	if again {
		incremental = 1
	}
	return f, c.write(struct {
		Type, Incremental   uint8
		X, Y, Width, Height uint16
	}{requestUpdate, incremental, uint16(at.Min.X), uint16(at.Min.Y), uint16(at.Dx()), uint16(at.Dy())})
}

func newFrame(part image.Rectangle) *frame {
	pixels := part.Dx() * part.Dy()
	return &frame{image: image.NewRGBA(part), came: make([]row, part.Dy()), left: pixels, budget: mostScreens*pixels + mostMessages}
}

// message reads one message of the server and reports whether the picture has to be asked for anew: the server said its size, so what
// came may belong to a screen that is no more, and Xvnc forgets with these words what it was asked for.
func (c *Conn) message(f *frame) (anew bool, err error) {
	kind, err := c.r.ReadByte()
	if err != nil {
		return false, err
	}
	if f.budget--; f.budget < 0 {
		return false, errFlood
	}
	switch kind {
	case framebufferUpdate:
		return c.update(f)
	case setColourMap:
		var head struct {
			_     uint8
			_     uint16
			Count uint16
		}
		if err := c.read(&head); err != nil {
			return false, err
		}
		const entry = 6
		return false, c.skip(int(head.Count) * entry)
	case bell:
		return false, nil
	case serverCutText:
		var head struct {
			_      [3]uint8
			Length uint32
		}
		if err := c.read(&head); err != nil {
			return false, err
		}
		if head.Length > maxText {
			return false, fmt.Errorf("the server announces a clipboard of %d bytes", head.Length)
		}
		return false, c.skip(int(head.Length))
	default:
		return false, fmt.Errorf("the server sends a message of the unknown type %d", kind)
	}
}

// rectangle heads each part of an update. With encodingScreenSize its fields mean other things.
type rectangle struct {
	X, Y, Width, Height uint16
	Encoding            int32
}

func (c *Conn) update(f *frame) (anew bool, err error) {
	var head struct {
		_     uint8
		Count uint16
	}
	if err := c.read(&head); err != nil {
		return false, err
	}
	f.changes++
	for range head.Count {
		var r rectangle
		if err := c.read(&r); err != nil {
			return anew, err
		}
		switch r.Encoding {
		case encodingRaw:
			err = c.raw(f, r, anew)
		case encodingScreenSize:
			anew, err = true, c.screenSize(r)
		case encodingLastRect:
			return anew, nil
		default:
			err = fmt.Errorf("the server sends the encoding %d, which nobody asked for", r.Encoding)
		}
		if err != nil {
			return anew, err
		}
	}
	return anew, nil
}

// raw reads pixels. Those that come with a size belong to a screen of that size and are dropped: all of it is asked for again.
func (c *Conn) raw(f *frame, r rectangle, dropped bool) error {
	at := image.Rect(int(r.X), int(r.Y), int(r.X)+int(r.Width), int(r.Y)+int(r.Height))
	if at.Max.X > c.size.X || at.Max.Y > c.size.Y { // not In: nothing is in everything
		return fmt.Errorf("the server sends pixels of %v, and its screen has %v", at, c.size)
	}
	if f.budget -= at.Dx() * at.Dy(); f.budget < 0 {
		return errFlood
	}
	const pixel = 4
	if dropped {
		return c.skip(at.Dx() * at.Dy() * pixel)
	}
	wanted := at.Intersect(f.image.Rect) // a server may send more than the part it was asked for
	line := make([]byte, at.Dx()*pixel)
	for y := at.Min.Y; y < at.Max.Y; y++ {
		if _, err := io.ReadFull(c.r, line); err != nil {
			return err
		}
		if y < wanted.Min.Y || y >= wanted.Max.Y {
			continue
		}
		for i := pixel - 1; i < len(line); i += pixel {
			line[i] = 0xff
		}
		copy(f.image.Pix[f.image.PixOffset(wanted.Min.X, y):], line[(wanted.Min.X-at.Min.X)*pixel:(wanted.Max.X-at.Min.X)*pixel])
		f.note(y-f.image.Rect.Min.Y, wanted.Min.X-f.image.Rect.Min.X, wanted.Max.X-f.image.Rect.Min.X)
	}
	return nil
}

// note marks the pixels of line y from one column up to another as come.
func (f *frame) note(y, from, to int) {
	const bits = 64
	if f.came[y] == nil {
		f.came[y] = make(row, (f.image.Rect.Dx()+bits-1)/bits)
	}
	for x := from; x < to; x++ {
		if word, bit := &f.came[y][x/bits], uint64(1)<<(x%bits); *word&bit == 0 {
			*word |= bit
			f.left--
		}
	}
}

func (c *Conn) skip(n int) error {
	_, err := io.CopyN(io.Discard, c.r, int64(n))
	return err
}
