package archive

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// makePipe makes a named pipe.
func (f *folder) makePipe(name string, mode fs.FileMode) error {
	if err := unix.Mkfifoat(f.fd(), name, uint32(mode.Perm())); err != nil {
		return err
	}
	return f.Chmod(name, mode.Perm()) // without the umask
}

func (f *folder) attributes() map[string]string { return attributes(f.dir()) }

func (f *folder) setAttributes(records map[string]string) (unset string) {
	return setAttributes(f.dir(), records)
}

// maxPieces bounds what a file's holes take in its header: the last piece is the rest of the file, holes and all.
const maxPieces = 20_000

// pieces finds where file has data. ok is false of a file without holes.
func pieces(file *os.File, info fs.FileInfo) (found []piece, ok bool, err error) {
	st, is := info.Sys().(*syscall.Stat_t)
	const sector = 512
	if !is || st.Blocks*sector >= st.Size {
		return nil, false, nil
	}
	size := st.Size
	for at := int64(0); at < size; {
		begin, err := file.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) { // nothing but a hole from here
			break
		}
		if err != nil {
			return nil, false, nil //nolint:nilerr // a file system that does not tell has no holes for us
		}
		if begin >= size { // it grew meanwhile
			break
		}
		end, err := file.Seek(begin, unix.SEEK_HOLE)
		if err != nil {
			return nil, false, err
		}
		if end = min(end, size); len(found) == maxPieces {
			end = size
		}
		found = append(found, piece{begin, end - begin})
		at = end
	}
	_, err = file.Seek(0, 0)
	return found, len(found) != 1 || found[0] != piece{0, size}, err
}

// attributes are a user's extended attributes of an open file. A file system without them has none.
func attributes(file *os.File) map[string]string {
	fd := int(file.Fd())
	var few [512]byte
	list := few[:]
	n, err := unix.Flistxattr(fd, list)
	if errors.Is(err, unix.ERANGE) {
		const most = 64 << 10
		list = make([]byte, most)
		n, err = unix.Flistxattr(fd, list)
	}
	if err != nil || n == 0 {
		return nil
	}
	var found map[string]string
	for name := range bytes.SplitSeq(list[:n], []byte{0}) {
		if !bytes.HasPrefix(name, []byte(userAttribute)) {
			continue
		}
		const most = 64 << 10
		value := make([]byte, most)
		n, err := unix.Fgetxattr(fd, string(name), value)
		if err != nil {
			continue // gone meanwhile
		}
		if found == nil {
			found = map[string]string{}
		}
		found[xattrRecord+string(name)] = string(value[:n])
	}
	return found
}

const userAttribute = "user."

// setAttributes gives an open file those of the records that are a user's extended attributes. unset names one that the file system does not
// take, "" none.
func setAttributes(file *os.File, records map[string]string) (unset string) {
	for key, value := range records {
		name, is := strings.CutPrefix(key, xattrRecord)
		if !is || !strings.HasPrefix(name, userAttribute) {
			continue
		}
		if err := unix.Fsetxattr(int(file.Fd()), name, []byte(value), 0); err != nil {
			unset = name
		}
	}
	return unset
}
