package contract

import (
	"context"
	"errors"
	"net"
)

// Dialer is an [Environment] that connects to ports inside, without anything being published: what speaks TCP in the sandbox is reached from
// wherever its caller is, through a remote engine too. It is optional; a caller asks by a type assertion.
type Dialer interface {
	// Dial connects to a port inside. network is "tcp" and address "127.0.0.1:PORT"; what listens there sees a connection from its own
	// loopback, and may listen on that, on all addresses, or on [::1]. ctx bounds the connecting, not the connection, which ends with the
	// container and with [Environment.Cleanup]. Safe for concurrent use. Errors are [*BackendError]; it is [ErrRefused] when nothing listens.
	Dial(ctx context.Context, network, address string) (Conn, error)
}

// Conn is a connection to a port in a sandbox. Close sends what was written and then the end; a Read on it gives io.EOF only for an end that
// the other side meant, [ErrReset] when it broke off, and a [*BackendError] when the way there was lost.
type Conn interface {
	net.Conn
	// CloseWrite says that nothing more will be written. Reading goes on.
	CloseWrite() error
	// Reset is a Close that lets the other side see that not everything was said.
	Reset() error
}

// ErrRefused is why [Dialer.Dial] fails when nothing listens on the port, ErrReset why a [Conn] does when the other side broke it off.
var (
	ErrRefused = errors.New("connection refused")
	ErrReset   = errors.New("connection reset by the other side")
)
