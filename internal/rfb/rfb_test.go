package rfb

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// script is a server whose every word is known beforehand, which is so as long as the client asks for nothing odd. What the client
// says is kept.
type script struct {
	io.Reader
	said bytes.Buffer
}

func (s *script) Write(p []byte) (int, error) { return s.said.Write(p) }

// words joins bytes, strings and big-endian values.
func words(parts ...any) []byte {
	var b []byte
	for _, p := range parts {
		switch v := p.(type) {
		case string:
			b = append(b, v...)
		case []byte:
			b = append(b, v...)
		default:
			var err error
			if b, err = binary.Append(b, binary.BigEndian, v); err != nil {
				panic(err)
			}
		}
	}
	return b
}

// hello is a server's part of the handshake for a screen of w by h pixels.
func hello(w, h uint16) []byte {
	return words(banner, []uint8{2, 16, securityNone}, uint32(0), w, h, make([]byte, 16), uint32(4), "box1")
}

// rect is the head of a rectangle.
func rect(x, y, w, h uint16, encoding int32) []byte { return words(x, y, w, h, encoding) }

// pixels are n pixels of a colour with a garbage fourth byte.
func pixels(n int, r, g, b byte) []byte { return bytes.Repeat([]byte{r, g, b, 0x5a}, n) }

func update(rects ...[]byte) []byte {
	return words(uint8(framebufferUpdate), uint8(0), uint16(len(rects)), bytes.Join(rects, nil))
}

// size is the rectangle by which a server says its size; why and result stand for who asked and what became of it.
func size(why, result, w, h uint16) []byte {
	return words(rect(why, result, w, h, encodingScreenSize), []uint8{1, 0, 0, 0}, uint32(7), uint16(0), uint16(0), w, h, uint32(9))
}

func dialScript(t *testing.T, parts ...[]byte) (*Conn, *script) {
	t.Helper()
	s := &script{Reader: bytes.NewReader(bytes.Join(parts, nil))}
	c, err := Dial(s)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

func TestHandshake(t *testing.T) {
	c, s := dialScript(t, hello(640, 480))
	if c.Name() != "box1" || c.Size() != image.Pt(640, 480) {
		t.Errorf("name %q, size %v", c.Name(), c.Size())
	}
	want := words(banner, []uint8{securityNone, 1},
		[]uint8{0, 0, 0, 0, 32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 0, 8, 16, 0, 0, 0},
		[]uint8{2, 0, 0, 3}, int32(0), int32(-224), int32(-308))
	if diff := cmp.Diff(want, s.said.Bytes()); diff != "" {
		t.Errorf("the client's words (-want +got):\n%s", diff)
	}
}

func TestHandshakeRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		server []byte
		want   string
	}{
		"another protocol":  {[]byte("SSH-2.0-Open"), `begins with "SSH-2.0-Open"`},
		"an older protocol": {[]byte("RFB 003.003\n"), `begins with "RFB 003.003\n"`},
		"a refusal":         {words(banner, uint8(0), uint32(9), "too\nmany!"), `the server refuses: "too\nmany!"`},
		"a long refusal":    {words(banner, uint8(0), uint32(1<<31)), "a text of 2147483648 bytes"},
		"a password":        {words(banner, []uint8{1, 2}), "authentication of the types [2]"},
		"a late refusal":    {words(banner, []uint8{1, 1}, uint32(1), uint32(2), "no"), `refuses: "no"`},
		"no width":          {hello(0, 480), "0 by 480 pixels"},
		"no memory for it":  {hello(65535, 65535), "65535 by 65535 pixels"},
		"a long name":       {words(hello(4, 4)[:len(banner)+3+4+4+16], uint32(1<<20)), "a text of 1048576 bytes"},
		"silence":           {nil, "unexpected EOF"},
		"half a word":       {hello(4, 4)[:20], "unexpected EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Dial(&script{Reader: bytes.NewReader(tc.server)})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "rfb handshake: ") {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestFrameIsPutTogether(t *testing.T) {
	c, s := dialScript(t, hello(3, 2),
		words(uint8(bell)),
		words(uint8(serverCutText), []uint8{0, 0, 0}, uint32(5), "hello"),
		words(uint8(setColourMap), uint8(0), uint16(0), uint16(2), make([]byte, 12)),
		update(append(rect(0, 0, 2, 2, encodingRaw), pixels(4, 1, 2, 3)...)),
		update(rect(0, 0, 0, 0, encodingRaw)), // nothing is no fault
		update(
			append(rect(1, 0, 1, 2, encodingRaw), pixels(2, 4, 5, 6)...), // again: the later one counts
			append(rect(2, 0, 1, 2, encodingRaw), pixels(2, 7, 8, 9)...),
			rect(0, 0, 0, 0, encodingLastRect),
		),
	)
	begin := s.said.Len()
	got, err := c.Frame()
	if err != nil {
		t.Fatal(err)
	}
	want := image.NewRGBA(image.Rect(0, 0, 3, 2))
	for y := range 2 {
		for x, value := range []byte{1, 4, 7} {
			want.SetRGBA(x, y, color.RGBA{R: value, G: value + 1, B: value + 2, A: 255})
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]byte{3, 0, 0, 0, 0, 0, 0, 3, 0, 2}, s.said.Bytes()[begin:]); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
}

func TestPartOfTheScreen(t *testing.T) {
	c, s := dialScript(t, hello(4, 3),
		update(append(rect(0, 1, 3, 1, encodingRaw), words(pixels(1, 1, 1, 1), pixels(1, 2, 2, 2), pixels(1, 3, 3, 3))...)), // more than was asked for
		update(append(rect(3, 0, 1, 3, encodingRaw), pixels(3, 4, 4, 4)...)),
		words(uint8(bell)), update(append(rect(1, 1, 1, 1, encodingRaw), pixels(1, 9, 9, 9)...)),
	)
	begin := s.said.Len()
	got, err := c.Part(image.Rect(1, 1, 9, 2))
	if err != nil {
		t.Fatal(err)
	}
	want := image.NewRGBA(image.Rect(1, 1, 4, 2))
	for x := 1; x < 4; x++ {
		want.SetRGBA(x, 1, color.RGBA{R: uint8(x + 1), G: uint8(x + 1), B: uint8(x + 1), A: 255})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := c.Await(image.Rect(1, 1, 2, 2)); err != nil {
		t.Error(err)
	}
	if err := c.Await(image.Rect(1, 1, 2, 2)); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("nothing changed any more, and it said %v", err)
	}
	asked := []byte{3, 0, 0, 1, 0, 1, 0, 3, 0, 1, 3, 1, 0, 1, 0, 1, 0, 1, 0, 1, 3, 1, 0, 1, 0, 1, 0, 1, 0, 1}
	if diff := cmp.Diff(asked, s.said.Bytes()[begin:]); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
	if none, err := c.Part(image.Rect(7, 7, 9, 9)); err != nil || !none.Rect.Empty() {
		t.Errorf("outside: %v, %v", none, err)
	}
}

func TestFrameRefusals(t *testing.T) {
	for name, tc := range map[string]struct {
		server []byte
		want   string
	}{
		"outside":              {update(append(rect(2, 0, 2, 1, encodingRaw), pixels(2, 0, 0, 0)...)), "sends pixels of (2,0)-(4,1)"},
		"nothing, outside":     {update(rect(4, 0, 0, 1, encodingRaw)), "sends pixels of (4,0)-(4,1)"},
		"sizes without end":    {bytes.Repeat(words(update(size(0, 0, 2, 1)), update(size(0, 0, 1, 2))), 50), "does not keep its size"},
		"far outside":          {update(rect(65535, 65535, 65535, 65535, encodingRaw)), "sends pixels of"},
		"an odd encoding":      {update(rect(0, 0, 1, 1, 7)), "the encoding 7"},
		"an odd message":       {[]byte{99}, "unknown type 99"},
		"a long clipboard":     {words(uint8(serverCutText), []uint8{0, 0, 0}, uint32(1<<31)), "a clipboard of 2147483648 bytes"},
		"a screen of no size":  {update(size(0, 0, 0, 5)), "0 by 5 pixels"},
		"the end":              {update(append(rect(0, 0, 3, 1, encodingRaw), pixels(3, 0, 0, 0)...)), "unexpected EOF"},
		"pixels without end":   {nil, "more than the screen"},
		"messages without end": {nil, "more than the screen"},
	} {
		t.Run(name, func(t *testing.T) {
			c, s := dialScript(t, hello(3, 2), tc.server)
			switch name { // bounded by the client alone
			case "pixels without end":
				s.Reader = forever(update(append(rect(0, 0, 3, 1, encodingRaw), pixels(3, 0, 0, 0)...)))
			case "messages without end":
				s.Reader = forever([]byte{bell})
			}
			if s.Reader != nil && tc.server == nil {
				c.r.Reset(s.Reader)
			}
			_, err := c.Frame()
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.HasPrefix(err.Error(), "rfb frame: ") {
				t.Fatalf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// forever repeats words, many at a time so that the test is quick.
func forever(word []byte) io.Reader {
	return &repeater{text: bytes.Repeat(word, 1<<20/len(word))}
}

type repeater struct {
	text []byte
	at   int
}

func (r *repeater) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

// Xvnc answers the first request with its size alone and waits to be asked again.
func TestFrameIsAskedForAgainWhenOnlyASizeCame(t *testing.T) {
	c, s := dialScript(t, hello(1, 1), update(size(0, 0, 1, 1)), update(append(rect(0, 0, 1, 1, encodingRaw), pixels(1, 1, 1, 1)...)))
	begin := s.said.Len()
	if _, err := c.Frame(); err != nil {
		t.Fatal(err)
	}
	want := []byte{3, 0, 0, 0, 0, 0, 0, 1, 0, 1, 3, 1, 0, 0, 0, 0, 0, 1, 0, 1}
	if diff := cmp.Diff(want, s.said.Bytes()[begin:]); diff != "" {
		t.Errorf("the requests (-want +got):\n%s", diff)
	}
}

// A screen that changes while it is read is asked for anew, and what came of the old one is dropped.
func TestFrameOfAScreenThatChangesItsSize(t *testing.T) {
	c, s := dialScript(t, hello(3, 2),
		update(append(rect(0, 0, 3, 1, encodingRaw), pixels(3, 1, 1, 1)...)),
		update(size(0, 0, 2, 1), append(rect(0, 0, 2, 1, encodingRaw), pixels(2, 2, 2, 2)...)),
		update(append(rect(0, 0, 2, 1, encodingRaw), pixels(2, 3, 3, 3)...)),
	)
	got, err := c.Frame()
	if err != nil {
		t.Fatal(err)
	}
	if want := image.Rect(0, 0, 2, 1); got.Rect != want || got.RGBAAt(1, 0) != (color.RGBA{3, 3, 3, 255}) {
		t.Fatalf("%v with %v", got.Rect, got.RGBAAt(1, 0))
	}
	if !bytes.HasSuffix(s.said.Bytes(), []byte{3, 1, 0, 0, 0, 0, 0, 2, 0, 1}) {
		t.Errorf("the new size was not asked for: %x", s.said.Bytes())
	}
}

func TestResize(t *testing.T) {
	full := func(w, h uint16, r byte) []byte {
		return update(append(rect(0, 0, w, h, encodingRaw), pixels(int(w)*int(h), r, r, r)...))
	}
	c, s := dialScript(t, hello(2, 2), update(size(0, 0, 2, 2)), full(2, 2, 1),
		full(1, 1, 9), // on its way when the change was asked for
		update(size(1, 0, 4, 3)), full(4, 3, 2))
	if _, err := c.Resize(4, 3); err == nil {
		t.Fatal("a server that cannot was asked")
	}
	if _, err := c.Frame(); err != nil {
		t.Fatal(err)
	}
	begin := s.said.Len()
	got, err := c.Resize(4, 3)
	if err != nil || got.Rect != image.Rect(0, 0, 4, 3) || got.RGBAAt(3, 2).R != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	want := words([]uint8{251, 0}, uint16(4), uint16(3), []uint8{1, 0}, uint32(7), uint16(0), uint16(0), uint16(4), uint16(3), uint32(9),
		[]uint8{3, 1, 0, 0, 0, 0, 0, 2, 0, 2}, []uint8{3, 0, 0, 0, 0, 0, 0, 4, 0, 3})
	if diff := cmp.Diff(want, s.said.Bytes()[begin:]); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	for _, bad := range []image.Point{{0, 5}, {5, -1}, {65536, 1}, {60000, 60000}} {
		if _, err := c.Resize(bad.X, bad.Y); err == nil || !strings.Contains(err.Error(), "no size of a screen") {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestResizeRefused(t *testing.T) {
	one := update(append(rect(0, 0, 1, 1, encodingRaw), pixels(1, 1, 1, 1)...))
	c, _ := dialScript(t, hello(1, 1), update(size(0, 0, 1, 1)), one, update(size(1, 3, 1, 1)))
	if _, err := c.Frame(); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Resize(9, 9); err == nil || !strings.Contains(err.Error(), "with code 3") {
		t.Fatal(err)
	}
}

func TestKeys(t *testing.T) {
	c, s := dialScript(t, hello(1, 1))
	begin := s.said.Len()
	if err := c.Type("a@ß€\n"); err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, key := range []uint32{'a', '@', 0xdf, 0x010020ac, 0xff0d} {
		want = append(want, words([]uint8{4, 1, 0, 0}, key, []uint8{4, 0, 0, 0}, key)...)
	}
	if diff := cmp.Diff(want, s.said.Bytes()[begin:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// broken fails every write.
type broken struct{ io.Reader }

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteFailuresAreReported(t *testing.T) {
	if _, err := Dial(broken{bytes.NewReader(hello(1, 1))}); !errors.Is(err, errBroken) {
		t.Errorf("handshake: %v", err)
	}
	c, _ := dialScript(t, hello(1, 1))
	c.w, c.resizable = broken{}, true
	for name, call := range map[string]func() error{
		"frame":  func() error { _, err := c.Frame(); return err },
		"resize": func() error { _, err := c.Resize(5, 5); return err },
		"key":    func() error { return c.Type("a") },
	} {
		if err := call(); !errors.Is(err, errBroken) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever a server says ends in a picture of the size it named or in an error.
func FuzzServer(f *testing.F) {
	f.Add(words(hello(3, 2), update(append(rect(0, 0, 3, 2, encodingRaw), pixels(6, 1, 2, 3)...))))
	f.Add(words(hello(3, 2), update(size(0, 0, 2, 1), append(rect(0, 0, 2, 1, encodingRaw), pixels(2, 2, 2, 2)...)), update(append(rect(0, 0, 2, 1, encodingRaw), pixels(2, 3, 3, 3)...)),
		update(size(1, 0, 1, 1)), update(append(rect(0, 0, 1, 1, encodingRaw), pixels(1, 3, 3, 3)...))))
	f.Add(words(hello(1, 1), []uint8{bell, setColourMap, 0, 0, 0, 0, 1}, make([]byte, 6), uint8(serverCutText), []uint8{0, 0, 0}, uint32(1), "x"))
	f.Add([]byte(banner))
	f.Fuzz(func(t *testing.T, server []byte) {
		c, err := Dial(&script{Reader: bytes.NewReader(server)})
		if err != nil {
			return
		}
		if part, err := c.Part(image.Rect(1, 0, 2, 2)); err == nil && !part.Rect.In(image.Rectangle{Max: c.Size()}) {
			t.Fatalf("a part of %v from a screen of %v", part.Rect, c.Size())
		}
		for _, ask := range []func() (*image.RGBA, error){c.Frame, func() (*image.RGBA, error) { return c.Resize(1, 1) }} {
			if c.size.X*c.size.Y > 1<<20 {
				return // slow, and nothing else
			}
			picture, err := ask()
			if err != nil {
				return
			}
			if picture.Rect != (image.Rectangle{Max: c.Size()}) {
				t.Fatalf("a picture of %v from a screen of %v", picture.Rect, c.Size())
			}
			for i := 3; i < len(picture.Pix); i += 4 {
				if picture.Pix[i] != 0xff {
					t.Fatal(fmt.Sprint("pixel ", i/4, " never came"))
				}
			}
		}
	})
}
