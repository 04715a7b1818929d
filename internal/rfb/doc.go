// Package rfb is the client side of the RFB protocol, version 3.8 (RFC 6143), as far as dockerbox needs it of the Xvnc in a sandbox:
// no authentication, whole frames in raw encoding, key events, and a change of the screen's size. Go has no well-kept library for it.
//
// A [Conn] works over any stream. Nothing the server says is trusted: its sizes are bounded before anything is made of them, and a
// server that breaks the protocol costs an error.
package rfb
