//go:build linux

package agent

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// The resident agent of an account is found by the name of an abstract socket. Anybody in the container may take such a name, so both
// sides check who the other is before anything passes.

// greeting is what attach sends with its stdin and stdout.
type greeting struct {
	User string `json:"user"`
}

// maxGreeting bounds a greeting in bytes.
const maxGreeting = 4 << 10

// accepted is the byte with which a resident takes over.
const accepted = '+'

// socketName names the resident of this account: its user number, its program (another version has another resident), and the
// container, because network namespaces and with them such names can be shared.
func socketName() (string, error) {
	f, err := os.Open(selfPath)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	size, err := io.Copy(sum, f)
	if err != nil {
		return "", err
	}
	space, err := pidSpace()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("@dockerbox-agent/%d/%x-%08x/%s", os.Geteuid(), size, sum.Sum32(), space), nil
}

func newSocket() (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("socket: %w", err)
	}
	return fd, nil
}

// checkPeer makes sure that the other side of fd is this very account.
func checkPeer(fd int) error {
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return fmt.Errorf("who the other side is: %w", err)
	}
	if self := os.Geteuid(); int(peer.Uid) != self {
		return fmt.Errorf("user %d has taken the name of user %d's agent", peer.Uid, self)
	}
	return nil
}

// sendStreams passes descriptors 0 and 1 with a greeting.
func sendStreams(fd int, g greeting) error {
	text, err := json.Marshal(g)
	if err != nil {
		return err
	}
	if len(text) > maxGreeting {
		return errors.New("the user's name is too long")
	}
	return unix.Sendmsg(fd, text, unix.UnixRights(0, 1), nil, 0)
}

// receiveStreams takes what sendStreams sent.
func receiveStreams(fd int) (g greeting, in, out *os.File, err error) {
	const descriptors = 2
	text, control := make([]byte, maxGreeting), make([]byte, unix.CmsgSpace(descriptors*4))
	var n, controls int
	for err = unix.EINTR; errors.Is(err, unix.EINTR); { // with a time-out set the kernel does not restart the call itself
		n, controls, _, _, err = unix.Recvmsg(fd, text, control, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil {
		return g, nil, nil, err
	}
	var fds []int
	messages, err := unix.ParseSocketControlMessage(control[:controls])
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	if err == nil {
		err = json.Unmarshal(text[:n], &g)
	}
	if err == nil && len(fds) != descriptors {
		err = fmt.Errorf("%s descriptors came", strconv.Itoa(len(fds)))
	}
	if err != nil {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
		return g, nil, nil, err
	}
	for _, fd := range fds {
		_ = unix.SetNonblock(fd, true) // a regular file cannot; it never waits either
	}
	in, out = os.NewFile(uintptr(fds[0]), "stdin"), os.NewFile(uintptr(fds[1]), "stdout")
	widen(in)
	widen(out)
	return g, in, out, nil
}
