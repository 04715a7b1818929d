package rfb

import (
	"errors"
	"fmt"
	"image"
	"io"
)

// Frame asks for the whole screen and returns it, every pixel opaque. When the screen changes its size meanwhile it is the new one.
func (c *Conn) Frame() (*image.RGBA, error) {
	f, err := c.frame()
	if err != nil {
		return nil, fmt.Errorf("rfb frame: %w", endMeansEarly(err))
	}
	return f.image, nil
}

// frame is a picture that is being filled.
type frame struct {
	image  *image.RGBA
	came   []row // of each line, what has come
	left   int   // pixels
	budget int   // pixels and messages the server may still send before this is taken for a flood
}

// row is which pixels of a line have come, one bit each.
type row []uint64

// What a server may send for one picture: pixels in screens full, messages without any, and changes of the size.
const (
	mostScreens  = 8
	mostMessages = 4096
	mostChanges  = 8
)

func (c *Conn) frame() (*frame, error) {
	for range mostChanges {
		f, err := c.request()
		changed := false
		for err == nil && f.left > 0 && !changed { // after a change, what came belongs to a screen that is no more
			changed, err = c.message(f)
		}
		if err != nil || !changed {
			return f, err
		}
	}
	return nil, errors.New("the server's screen does not keep its size")
}

var errFlood = errors.New("the server sends more than the screen it was asked for")

// request asks for every pixel of the screen.
func (c *Conn) request() (*frame, error) {
	const incremental = 0
	err := c.write(struct {
		Type, Incremental   uint8
		X, Y, Width, Height uint16
	}{requestUpdate, incremental, 0, 0, uint16(c.size.X), uint16(c.size.Y)})
	return newFrame(c.size), err
}

func newFrame(size image.Point) *frame {
	pixels := size.X * size.Y
	return &frame{image: image.NewRGBA(image.Rectangle{Max: size}), came: make([]row, size.Y), left: pixels, budget: mostScreens*pixels + mostMessages}
}

// message reads one message of the server and reports whether the screen has another size since.
func (c *Conn) message(f *frame) (changed bool, err error) {
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

func (c *Conn) update(f *frame) (changed bool, err error) {
	var head struct {
		_     uint8
		Count uint16
	}
	if err := c.read(&head); err != nil {
		return false, err
	}
	for range head.Count {
		var r rectangle
		if err := c.read(&r); err != nil {
			return changed, err
		}
		switch r.Encoding {
		case encodingRaw:
			err = c.raw(f, r, changed)
		case encodingScreenSize:
			var now bool
			now, err = c.screenSize(r)
			changed = changed || now
		case encodingLastRect:
			return changed, nil
		default:
			err = fmt.Errorf("the server sends the encoding %d, which nobody asked for", r.Encoding)
		}
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// raw reads pixels. After a change of size they belong to the new screen and are dropped: all of it is asked for again.
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
	for y := at.Min.Y; y < at.Max.Y; y++ {
		begin := f.image.PixOffset(at.Min.X, y)
		line := f.image.Pix[begin : begin+at.Dx()*pixel]
		if _, err := io.ReadFull(c.r, line); err != nil {
			return err
		}
		for i := pixel - 1; i < len(line); i += pixel {
			line[i] = 0xff
		}
		f.note(y, at.Min.X, at.Max.X)
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
