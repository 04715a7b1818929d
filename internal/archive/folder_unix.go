//go:build unix

package archive

import (
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// quota is how a full quota is reported.
var quota error = unix.EDQUOT

// prepare opens the directory a second time, for calls that [os.Root] does not have. They are given names without a slash only, and follow
// no links, so they cannot leave the directory either.
func (f *folder) prepare() error {
	dir, err := f.Open(".")
	f.own = dir
	return err
}

func (f *folder) finish() { _ = f.dir().Close() } // only looked at

func (f *folder) dir() *os.File {
	dir, _ := f.own.(*os.File)
	return dir
}

func (f *folder) fd() int { return int(f.dir().Fd()) }

// names lists the directory.
func (f *folder) names() ([]string, error) {
	if _, err := f.dir().Seek(0, 0); err != nil {
		return nil, err
	}
	return f.dir().Readdirnames(-1)
}

// setTime sets the time of a file or of a link itself.
func (f *folder) setTime(name string, at time.Time) error {
	ts, err := unix.TimeToTimespec(at)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(f.fd(), name, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW)
}

// quiet opens what is not to act on being opened: no waiting for the other end of a pipe, no terminal of ours, no link.
const quiet = unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_NOFOLLOW

// fileID is a file's identity on this machine.
type fileID struct{ dev, ino uint64 }

// identity tells files with several names apart. ok is false of one with a single name.
func identity(info fs.FileInfo) (id fileID, ok bool) {
	st, is := info.Sys().(*syscall.Stat_t)
	if !is || st.Nlink < 2 {
		return fileID{}, false
	}
	return fileID{uint64(st.Dev), st.Ino}, true //nolint:unconvert // its type differs between systems
}

// owner is who has a file, by number.
func owner(info fs.FileInfo) (uid, gid int) {
	if st, is := info.Sys().(*syscall.Stat_t); is {
		return int(st.Uid), int(st.Gid)
	}
	return 0, 0
}
