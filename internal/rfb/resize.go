package rfb

import (
	"errors"
	"fmt"
	"image"
)

// Sources and results of a change of size, in the fields of its rectangle.
const (
	sourceSelf = 1 // this client asked for it
	accepted   = 0
)

// screenSize reads what the server says of its size.
func (c *Conn) screenSize(r rectangle) error {
	var head struct {
		Monitors uint8
		_        [3]uint8
	}
	if err := c.read(&head); err != nil {
		return err
	}
	for i := range head.Monitors {
		var m struct {
			ID                  [4]byte
			X, Y, Width, Height uint16
			Flags               [4]byte
		}
		if err := c.read(&m); err != nil {
			return err
		}
		if i == 0 {
			copy(c.layout[:4], m.ID[:])
			copy(c.layout[4:], m.Flags[:])
		}
	}
	c.resizable = true
	if r.X == sourceSelf && r.Y != accepted {
		return fmt.Errorf("the server refuses the size %d by %d with code %d", r.Width, r.Height, r.Y)
	}
	return c.resize(int(r.Width), int(r.Height))
}

// Resize makes the screen width by height pixels, as one monitor, and returns its picture after that. The server must have said in an
// earlier frame that it can; a size it does not want is an error.
func (c *Conn) Resize(width, height int) (*image.RGBA, error) {
	if !c.resizable {
		return nil, errors.New("rfb resize: the server has not said that its screen can have another size")
	}
	const most = 1<<16 - 1
	if width < 1 || height < 1 || width > most || height > most || width*height > MaxPixels {
		return nil, fmt.Errorf("rfb resize: %d by %d pixels are no size of a screen", width, height)
	}
	type monitor struct {
		ID                  [4]byte
		X, Y, Width, Height uint16
		Flags               [4]byte
	}
	w, h := uint16(width), uint16(height)
	err := c.write(struct {
		Type, _       uint8
		Width, Height uint16
		Monitors, _   uint8
		Only          monitor
	}{
		Type: setDesktopSize, Width: w, Height: h, Monitors: 1,
		Only: monitor{ID: [4]byte(c.layout[:4]), Width: w, Height: h, Flags: [4]byte(c.layout[4:])},
	})
	if err != nil {
		return nil, fmt.Errorf("rfb resize: %w", err)
	}
	// The answer comes before any pixel of the new size; a frame that was complete already is of the old one.
	for range mostRequests {
		if c.size == image.Pt(width, height) {
			return c.Frame()
		}
		old, err := c.request(everything, true) // Xvnc says nothing, not even this, to a client that is not waiting for anything
		for said := false; err == nil && !said; {
			said, err = c.message(old)
		}
		if err != nil {
			return nil, fmt.Errorf("rfb resize: %w", endMeansEarly(err))
		}
	}
	return nil, errors.New("rfb resize: the server's screen does not keep its size")
}
