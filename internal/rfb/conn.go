package rfb

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"io"
)

// MaxPixels bounds a screen. It is more than any monitor has, and a frame of it is 128 MiB.
const MaxPixels = 32 << 20

// Limits of what a server may say besides pixels, in bytes.
const (
	maxReason = 4 << 10 // why it refuses
	maxName   = 4 << 10
	maxText   = 1 << 20 // of a clipboard, which is skipped
)

// Conn is one connection to a screen. Not safe for concurrent use. The stream stays its maker's: closing it is what ends a call that
// waits.
type Conn struct {
	w    io.Writer
	r    *bufio.Reader
	name string
	size image.Point
	// layout is the one monitor's id and flags as the server last named them; resizable is whether it has.
	layout    [8]byte
	resizable bool
}

// Security and message types, and encodings, of RFC 6143 and the registry that continues it.
const (
	securityNone = 1

	setPixelFormat = 0
	setEncodings   = 2
	requestUpdate  = 3
	keyEvent       = 4
	setDesktopSize = 251

	framebufferUpdate  = 0
	setColourMap       = 1
	bell               = 2
	serverCutText      = 3
	encodingRaw        = 0
	encodingLastRect   = -224
	encodingScreenSize = -308 // ExtendedDesktopSize
)

// Dial shakes hands over stream and asks for the screen to itself by no means: other viewers stay. It reads and writes, and returns
// when the server has described its screen.
func Dial(stream io.ReadWriter) (*Conn, error) {
	c := &Conn{w: stream, r: bufio.NewReaderSize(stream, 64<<10)}
	for _, step := range []func() error{c.version, c.security, c.initialise, c.prefer} {
		if err := step(); err != nil {
			return nil, fmt.Errorf("rfb handshake: %w", endMeansEarly(err))
		}
	}
	return c, nil
}

// Name is the screen's title as the server chose it. No I/O.
func (c *Conn) Name() string { return c.name }

// Size is the screen's size in pixels as the server last said. No I/O.
func (c *Conn) Size() image.Point { return c.size }

// banner is the version this client speaks, and the only one.
const banner = "RFB 003.008\n"

func (c *Conn) version() error {
	var theirs [len(banner)]byte
	if _, err := io.ReadFull(c.r, theirs[:]); err != nil {
		return err
	}
	if string(theirs[:]) != banner {
		return fmt.Errorf("the server begins with %q, not with %q", theirs[:], banner)
	}
	return c.write([]byte(banner))
}

func (c *Conn) security() error {
	n, err := c.r.ReadByte()
	if err != nil {
		return err
	}
	if n == 0 {
		return c.refused()
	}
	types := make([]byte, n)
	if _, err := io.ReadFull(c.r, types); err != nil {
		return err
	}
	found := false
	for _, t := range types {
		found = found || t == securityNone
	}
	if !found {
		return fmt.Errorf("the server wants authentication of the types %d", types)
	}
	if err := c.write([]byte{securityNone}); err != nil {
		return err
	}
	var result uint32
	if err := c.read(&result); err != nil {
		return err
	}
	if result != 0 {
		return c.refused()
	}
	return nil
}

// refused reads why.
func (c *Conn) refused() error {
	why, err := c.text(maxReason)
	if err != nil {
		return err
	}
	return fmt.Errorf("the server refuses: %q", why)
}

func (c *Conn) initialise() error {
	const shared = 1
	if err := c.write([]byte{shared}); err != nil {
		return err
	}
	var about struct {
		Width, Height uint16
		Format        [16]byte // replaced by prefer
	}
	if err := c.read(&about); err != nil {
		return err
	}
	if err := c.resize(int(about.Width), int(about.Height)); err != nil {
		return err
	}
	name, err := c.text(maxName)
	c.name = name
	return err
}

// prefer chooses the pixels' form, four bytes in the order red, green, blue, nothing, so that they need no more than to be copied, and
// the encodings.
func (c *Conn) prefer() error {
	return errors.Join(
		c.write(struct {
			Type                            uint8
			_                               [3]byte
			Bits, Depth, BigEndian, TrueCol uint8
			RedMax, GreenMax, BlueMax       uint16
			RedShift, GreenShift, BlueShift uint8
			_                               [3]byte
		}{
			Type: setPixelFormat, Bits: 32, Depth: 24, TrueCol: 1, RedMax: 255, GreenMax: 255, BlueMax: 255,
			RedShift: 0, GreenShift: 8, BlueShift: 16,
		}),
		c.write(struct {
			Type uint8
			_    uint8
			N    uint16
			E    [3]int32
		}{setEncodings, 0, 3, [3]int32{encodingRaw, encodingLastRect, encodingScreenSize}}),
	)
}

// resize takes the screen's size as the server says it.
func (c *Conn) resize(width, height int) error {
	if width == 0 || height == 0 || width*height > MaxPixels {
		return fmt.Errorf("the server says that its screen has %d by %d pixels", width, height)
	}
	c.size = image.Pt(width, height)
	return nil
}

func (c *Conn) read(into any) error { return binary.Read(c.r, binary.BigEndian, into) }

func (c *Conn) write(v any) error {
	b, err := binary.Append(nil, binary.BigEndian, v)
	if err != nil {
		return err
	}
	_, err = c.w.Write(b)
	return err
}

// text reads a string with its length, of at most limit bytes.
func (c *Conn) text(limit int) (string, error) {
	var n uint32
	if err := c.read(&n); err != nil {
		return "", err
	}
	if int64(n) > int64(limit) {
		return "", fmt.Errorf("the server announces a text of %d bytes", n)
	}
	b := make([]byte, n)
	_, err := io.ReadFull(c.r, b)
	return string(b), err
}

// endMeansEarly: a stream that ends within the protocol ends early, wherever that happens to be.
func endMeansEarly(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
