package rfb

import "fmt"

// Keysyms of keys that are not characters, from X11's keysymdef.h.
const (
	KeyTab    = 0xff09
	KeyReturn = 0xff0d
	KeyEscape = 0xff1b
)

// Keysym is the number by which X11 and RFB know the key of a character: its Latin-1 code, that of a control key for a newline or a
// tabulator, else its Unicode number with a mark.
func Keysym(r rune) uint32 {
	const unicode = 0x01000000
	switch {
	case r == '\n' || r == '\r':
		return KeyReturn
	case r == '\t':
		return KeyTab
	case r >= 0x20 && r <= 0x7e, r >= 0xa0 && r <= 0xff:
		return uint32(r)
	default:
		return unicode + uint32(r)
	}
}

// Key presses or releases a key.
func (c *Conn) Key(keysym uint32, down bool) error {
	event := struct {
		Type, Down uint8
		_          uint16
		Key        uint32
	}{Type: keyEvent, Key: keysym}
	if down {
		event.Down = 1
	}
	if err := c.write(event); err != nil {
		return fmt.Errorf("rfb key: %w", err)
	}
	return nil
}

// Type presses and releases the key of each character in turn.
func (c *Conn) Type(text string) error {
	for _, r := range text {
		for _, down := range []bool{true, false} {
			if err := c.Key(Keysym(r), down); err != nil {
				return err
			}
		}
	}
	return nil
}
