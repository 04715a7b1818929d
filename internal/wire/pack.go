package wire

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// Packed data frames carry their payload as an S2 block. Every byte between host and agent is copied by the engine's own processes, at
// about a tenth of the speed at which text is packed to a third, so packing is what a flood gains most by. The types of packed frames
// are those of the plain ones in lower case.

// FeaturePack in a hello says that its sender understands packed frames. Nobody packs for a peer that did not say so.
const FeaturePack = "pack"

const (
	packed = 'a' - 'A'
	// packAtLeast is the smallest payload worth it, in bytes: anything less is one small write either way.
	packAtLeast = 4 << 10
	// mostSkipped bounds how many frames go by after ones that did not get smaller: what a command writes may change.
	mostSkipped = 32
)

// packer packs what becomes smaller. Its zero value packs nothing.
type packer struct {
	on         bool
	buf        []byte
	skip, next int // frames that go by now, and after the next failure
}

// pack returns f, or what stands for it. Valid until the next call.
func (p *packer) pack(f Frame) Frame {
	if !p.on || len(f.Payload) < packAtLeast || !carriesData(f.Type) {
		return f
	}
	if p.skip > 0 {
		p.skip--
		return f
	}
	if size := s2.MaxEncodedLen(len(f.Payload)); cap(p.buf) < size {
		p.buf = make([]byte, size)
	}
	block := s2.Encode(p.buf[:cap(p.buf)], f.Payload)
	if len(block) > len(f.Payload)*3/4 {
		p.next = min(2*p.next+1, mostSkipped)
		p.skip = p.next
		return f
	}
	p.next = 0
	return Frame{Type: f.Type + packed, ID: f.ID, Payload: block}
}

func carriesData(t Type) bool { return t == TypeOutput || t == TypeErrors || t == TypeInput }

// ErrPacked is returned for a packed frame that cannot be unpacked, or would be longer than any data frame.
var ErrPacked = errors.New("packed frame is broken")

// unpack returns the frame that f stands for, in buf or one grown from it, and that buffer. The peer may be hostile: the size is checked
// before anything is made of it.
func unpack(f Frame, buf []byte) (Frame, []byte, error) {
	if f.Type < packed || !carriesData(f.Type-packed) {
		return f, buf, nil
	}
	size, err := s2.DecodedLen(f.Payload)
	if err != nil || size > MaxData {
		return Frame{}, buf, fmt.Errorf("%w: %d bytes become %d", ErrPacked, len(f.Payload), size)
	}
	if cap(buf) < size {
		buf = make([]byte, MaxData)
	}
	data, err := s2.Decode(buf[:size], f.Payload)
	if err != nil {
		return Frame{}, buf, fmt.Errorf("%w: %w", ErrPacked, err)
	}
	return Frame{Type: f.Type - packed, ID: f.ID, Payload: data}, buf, nil
}
