package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFramesSurviveAnyChunking(t *testing.T) {
	frames := []Frame{
		{TypeInput, 1, []byte("abc")},
		{TypeEnd, 1, nil},
		{TypeOutput, 1<<32 - 1, bytes.Repeat([]byte{0, 255}, MaxData/2)},
		Credit(7, 12345),
	}
	var b []byte
	for _, f := range frames {
		b = Append(b, f)
	}
	r := NewReader(iotest.OneByteReader(bytes.NewReader(b)), MaxFromAgent)
	for i, want := range frames {
		got, err := r.Next()
		if err != nil || got.Type != want.Type || got.ID != want.ID || !bytes.Equal(got.Payload, want.Payload) {
			t.Fatalf("frame %d: got %c %d (%d bytes), %v", i, got.Type, got.ID, len(got.Payload), err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v, want io.EOF", err)
	}
}

func TestReaderRefusesWhatItShould(t *testing.T) {
	length := func(n uint32, rest ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	for name, tc := range map[string]struct {
		in   []byte
		want error
	}{
		"4 GiB":             {length(1<<32-1, 'O', 0, 0, 0, 1), ErrTooLong},
		"one above limit":   {length(5+101, 'O', 0, 0, 0, 1), ErrTooLong},
		"no room for type":  {length(4, 'O', 0, 0, 0, 1), ErrTooShort},
		"zero":              {length(0, 'O', 0, 0, 0, 1), ErrTooShort},
		"ends in header":    {length(5, 'O')[:5], io.ErrUnexpectedEOF},
		"ends in payload":   {length(5+100, 'O', 0, 0, 0, 1, 'x'), io.ErrUnexpectedEOF},
		"ends before any":   {length(5+1, 'O', 0, 0, 0, 1), io.ErrUnexpectedEOF},
		"clean end":         {nil, io.EOF},
		"text, not a frame": {[]byte("bash: no such file"), ErrTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := NewReader(bytes.NewReader(tc.in), 100).Next(); !errors.Is(err, tc.want) {
				t.Fatalf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// A peer that announces the largest frame and never sends it must not cost the memory it announced.
func TestAnnouncedLengthAloneCostsNoMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h := binary.BigEndian.AppendUint32(nil, MaxFromHost)
	h = append(h, byte(TypeRun), 0, 0, 0, 1)
	if _, err := NewReader(io.MultiReader(bytes.NewReader(h), strings.NewReader("x")), MaxFromHost).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Fatalf("a length alone allocated %d bytes", grown)
	}
}

func TestWriterKeepsFramesTogetherAndItsFirstError(t *testing.T) {
	var calls [][]byte
	w := NewWriter(writerFunc(func(p []byte) (int, error) {
		calls = append(calls, bytes.Clone(p))
		return len(p), nil
	}))
	if err := w.Write(Frame{TypeInput, 1, []byte("a")}, Frame{TypeEnd, 1, nil}); err != nil || len(calls) != 1 {
		t.Fatalf("%d writes, %v", len(calls), err)
	}
	broken := errors.New("broken")
	n := 0
	w = NewWriter(writerFunc(func([]byte) (int, error) { n++; return 0, broken }))
	for range 2 {
		if err := w.Write(Frame{TypeEnd, 1, nil}); !errors.Is(err, broken) {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Fatalf("wrote %d times after the stream broke", n)
	}
}

func TestMessagesKeepEveryByte(t *testing.T) {
	run := Run{
		User: "4242:0", Shell: []byte("echo '\xff\xfe\n\x01'"), Dir: []byte("/tmp/n\nl \xff"),
		Env: map[string][]byte{"K": []byte("\xff=")}, Stdin: true, TimeoutMS: 1500,
	}
	got, err := Decode[Run](Encode(TypeRun, 3, run))
	if err != nil || !reflect.DeepEqual(got, run) {
		t.Fatalf("got %+v, %v", got, err)
	}
	if _, err := Decode[Exit](Frame{TypeExit, 3, []byte(`{"code":"x"}`)}); err == nil {
		t.Fatal("a wrong type was accepted")
	}
	if h, err := Decode[Hello](Frame{TypeHello, 0, []byte(`{"name":"n","protocol":1,"later":[1]}`)}); err != nil || h.Name != "n" {
		t.Fatalf("an unknown field was not ignored: %+v %v", h, err)
	}
}

func TestParseCreditRefusesOtherSizes(t *testing.T) {
	for _, p := range [][]byte{nil, {1}, {1, 2, 3, 4, 5}, {255, 255, 255, 255}} {
		if n, err := ParseCredit(Frame{TypeCredit, 1, p}); err == nil {
			t.Fatalf("%v gave %d", p, n)
		}
	}
	if n, err := ParseCredit(Credit(1, 77)); n != 77 || err != nil {
		t.Fatal(n, err)
	}
}

// Whatever bytes arrive, a reader ends with an error and what it accepted encodes back to the same bytes.
func FuzzReader(f *testing.F) {
	f.Add(Append(nil, Frame{TypeOutput, 1, []byte("hi")}))
	f.Add(Append(Append(nil, Encode(TypeHello, 0, Hello{Name: AgentName, Protocol: 1})), Credit(1, 5)))
	f.Add([]byte{255, 255, 255, 255, 'O', 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in), 4096)
		var out []byte
		for {
			fr, err := r.Next()
			if err != nil {
				break
			}
			out = Append(out, fr)
			_, _ = Decode[Exit](fr)
			_, _ = Decode[Run](fr)
			_, _ = ParseCredit(fr)
		}
		if !bytes.HasPrefix(in, out) {
			t.Fatalf("decoded frames encode to other bytes")
		}
	})
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// vectored keeps what came as a vector apart from what came in one piece.
type vectored struct {
	bytes.Buffer
	vectors int
}

func (v *vectored) WriteVector(pieces net.Buffers) error {
	v.vectors++
	_, err := pieces.WriteTo(&v.Buffer)
	return err
}

func TestLargePayloadsAreNotCopied(t *testing.T) {
	var plain bytes.Buffer
	var v vectored
	large := bytes.Repeat([]byte("x"), vectorFrom)
	for _, w := range []*Writer{NewWriter(&plain), NewWriter(&v)} {
		for _, frames := range [][]Frame{
			{{Type: TypeOutput, ID: 1, Payload: []byte("a")}, {Type: TypeOutput, ID: 2, Payload: large}},
			{{Type: TypeOutput, ID: 3, Payload: large}, {Type: TypeExit, ID: 3}},
			{{Type: TypeInput, ID: 4, Payload: large}},
			{},
		} {
			if err := w.Write(frames...); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !bytes.Equal(plain.Bytes(), v.Bytes()) {
		t.Error("a vector carries other bytes")
	}
	if v.vectors != 2 {
		t.Errorf("%d vectors", v.vectors)
	}
}
