package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
)

// regular packs a file's content. packed is false of one that was left out.
func (p *packer) regular(h *tar.Header, e entry) (packed bool, err error) {
	file, err := e.open()
	if err != nil {
		p.leaveOut(e.rel, err)
		return false, nil
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil || !info.Mode().IsRegular() {
		p.leaveOut(e.rel, cmp.Or(err, errors.New("is not the file it was a moment ago")))
		return false, nil
	}
	h.Size, h.ModTime, h.Mode = info.Size(), info.ModTime(), modeBits(info.Mode())
	h.PAXRecords = attributes(file)
	if h.Size > 0 && !p.options.Plain {
		data, sparse, err := pieces(file, info)
		if err != nil {
			p.leaveOut(e.rel, err)
			return false, nil
		}
		if sparse {
			return true, p.sparse(h, e, file, data)
		}
	}
	return p.content(h, e, file)
}

// packBuffer is how much of a file is read at once, in bytes. A file that fits is read before its header is written, so that one that
// changes meanwhile has the right one all the same.
const packBuffer = 256 << 10

func (p *packer) content(h *tar.Header, e entry, file *os.File) (bool, error) {
	if p.buffer == nil {
		p.buffer = make([]byte, packBuffer)
	}
	if h.Size < packBuffer {
		n, err := readAll(file, p.buffer)
		if err != nil {
			p.leaveOut(e.rel, err)
			return false, nil
		}
		if n < packBuffer {
			h.Size = int64(n)
			if err := p.w.WriteHeader(h); err != nil {
				return false, err
			}
			_, err := p.w.Write(p.buffer[:n])
			p.totals.Bytes += int64(n)
			return true, err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil { // it is larger than it said, as files of /proc are
			return false, faultOf(p.shownName(e.rel), err)
		}
		return p.growing(h, e, file)
	}
	if err := p.w.WriteHeader(h); err != nil {
		return false, err
	}
	return true, p.copy(e, file, h.Size)
}

// growing packs a file that does not say its size: all of it is read first, up to a bound.
func (p *packer) growing(h *tar.Header, e entry, file *os.File) (bool, error) {
	const most = 64 << 20
	data, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && len(data) > most {
		err = errors.New("it grows while it is read")
	}
	if err != nil {
		p.leaveOut(e.rel, err)
		return false, nil
	}
	h.Size = int64(len(data))
	if err := p.w.WriteHeader(h); err != nil {
		return false, err
	}
	_, err = io.Copy(p.w, bytes.NewReader(data))
	p.totals.Bytes += h.Size
	return true, err
}

// sparse packs the pieces of a file that have data.
func (p *packer) sparse(h *tar.Header, e entry, file *os.File, data []piece) error {
	if h.PAXRecords == nil {
		h.PAXRecords = map[string]string{}
	}
	h.PAXRecords[holesRecord] = encodePieces(h.Size, data)
	h.Size = total(data)
	if err := p.w.WriteHeader(h); err != nil {
		return err
	}
	for _, d := range data {
		if _, err := file.Seek(d.at, io.SeekStart); err != nil {
			return faultOf(p.shownName(e.rel), err)
		}
		if err := p.copy(e, file, d.size); err != nil {
			return err
		}
	}
	return nil
}

// copy packs the next n bytes. The header said that there are so many: a file that lost some ends the copy, for no reader could tell.
func (p *packer) copy(e entry, file *os.File, n int64) error {
	if p.buffer == nil {
		p.buffer = make([]byte, packBuffer)
	}
	for n > 0 {
		got, err := file.Read(p.buffer[:min(n, packBuffer)])
		if got > 0 {
			if _, err := p.w.Write(p.buffer[:got]); err != nil {
				return err
			}
			n -= int64(got)
			p.totals.Bytes += int64(got)
			p.report(false)
		}
		if errors.Is(err, io.EOF) {
			err = errors.New("it became shorter while it was read")
		}
		if err != nil && n > 0 {
			return faultOf(p.shownName(e.rel), err)
		}
	}
	return nil
}

// readAll fills as much of b as the file has.
func readAll(file io.Reader, b []byte) (n int, err error) {
	for n < len(b) {
		got, err := file.Read(b[n:])
		n += got
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
	return n, nil
}
