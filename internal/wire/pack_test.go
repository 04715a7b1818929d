package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
)

// through writes frames with a packing Writer and returns what a Reader makes of them, and the bytes that went between.
func through(t *testing.T, frames ...Frame) (got []Frame, between int) {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	w.Pack()
	for _, f := range frames {
		if err := w.Write(f); err != nil {
			t.Fatal(err)
		}
	}
	between = b.Len()
	r := NewReader(&b, MaxFromAgent)
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return got, between
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Payload = bytes.Clone(f.Payload)
		got = append(got, f)
	}
}

func TestPackedFramesArriveAsTheyWere(t *testing.T) {
	text := []byte(strings.Repeat("the quick brown fox jumps over the lazy dog\n", MaxData/44))
	noise := make([]byte, MaxData)
	seed := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(seed.Uint32())
	}
	frames := []Frame{
		{TypeOutput, 1, text}, {TypeErrors, 2, text[:packAtLeast]}, {TypeInput, 3, text}, {TypeOutput, 4, text[:packAtLeast-1]},
		{TypeOutput, 5, noise}, {TypeOutput, 6, text}, {TypeRun, 7, text}, {TypeEnd, 8, nil}, {TypeOutput, 9, make([]byte, MaxData)},
	}
	got, between := through(t, frames...)
	if len(got) != len(frames) {
		t.Fatalf("%d frames of %d", len(got), len(frames))
	}
	for i, want := range frames {
		if got[i].Type != want.Type || got[i].ID != want.ID || !bytes.Equal(got[i].Payload, want.Payload) {
			t.Errorf("frame %d: %c %d with %d bytes, want %c %d with %d", i, got[i].Type, got[i].ID, len(got[i].Payload), want.Type, want.ID, len(want.Payload))
		}
	}
	if most := len(noise) + 3*len(text); between > most { // noise, two that are not packed, and one that goes by after noise
		t.Errorf("%d bytes went between, want at most %d", between, most)
	}
}

// What does not become smaller is soon left alone, and tried again when it may have changed.
func TestPackingGivesUpAndComesBack(t *testing.T) {
	p := packer{on: true}
	noise := make([]byte, MaxData)
	for i := range noise {
		noise[i] = byte(rand.Uint32())
	}
	for range 200 {
		if f := p.pack(Frame{TypeOutput, 1, noise}); f.Type != TypeOutput {
			t.Fatalf("noise was packed to %d bytes", len(f.Payload))
		}
	}
	if p.next != mostSkipped {
		t.Errorf("after noise %d go by, want %d", p.next, mostSkipped)
	}
	zeros := Frame{TypeOutput, 1, make([]byte, MaxData)}
	n := 0
	for p.pack(zeros).Type == TypeOutput {
		if n++; n > mostSkipped {
			t.Fatal("never tried again")
		}
	}
	for range 3 {
		if f := p.pack(zeros); f.Type == TypeOutput || len(f.Payload) > MaxData/100 {
			t.Fatalf("zeros went as %c with %d bytes", f.Type, len(f.Payload))
		}
	}
}

func TestNobodyPacksUnasked(t *testing.T) {
	var b bytes.Buffer
	if err := NewWriter(&b).Write(Frame{TypeOutput, 1, make([]byte, MaxData)}); err != nil || b.Len() != headerSize+MaxData {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
}

func TestBrokenPackedFramesAreRefused(t *testing.T) {
	for name, block := range map[string][]byte{
		"nothing":           {},
		"noise":             []byte("\xff\xff\xff\xff\xff\xff"),
		"more than a frame": s2.Encode(nil, make([]byte, MaxData+1)),
		"a lie":             append(s2.Encode(nil, make([]byte, 100))[:1:1], 0, 0),
	} {
		r := NewReader(bytes.NewReader(Append(nil, Frame{TypeOutput + packed, 1, block})), MaxFromAgent)
		if f, err := r.Next(); !errors.Is(err, ErrPacked) {
			t.Errorf("%s: %c with %d bytes, %v", name, f.Type, len(f.Payload), err)
		}
	}
	// Of other types there are no packed ones.
	r := NewReader(bytes.NewReader(Append(nil, Frame{'x', 1, []byte("abc")})), MaxFromAgent)
	if f, err := r.Next(); err != nil || f.Type != 'x' {
		t.Errorf("%c, %v", f.Type, err)
	}
}
