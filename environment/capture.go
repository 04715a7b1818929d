package environment

import "fmt"

// capture keeps a command's output within a bound: the head and the tail, which hold what was asked and how it ended.
type capture struct {
	limit   int // bytes, 0 = everything
	head    []byte
	tail    []byte // a ring once it is full
	next    int    // where the ring's oldest byte is
	dropped int64
}

// headShare is the part of the limit that the head gets: 40 %, the rest is tail, as Hermes's own window has it.
func (c *capture) headShare() int { return c.limit * 2 / 5 }

func (c *capture) write(p []byte) {
	if c.limit <= 0 {
		c.head = append(c.head, p...)
		return
	}
	if free := c.headShare() - len(c.head); free > 0 {
		n := min(free, len(p))
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	size := c.limit - c.headShare()
	if len(p) > size { // only its own end can survive
		c.dropped += int64(len(p) - size)
		p = p[len(p)-size:]
	}
	if free := size - len(c.tail); free > 0 {
		n := min(free, len(p))
		c.tail = append(c.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.tail[c.next:], p)
		c.dropped += int64(n)
		c.next = (c.next + n) % size
		p = p[n:]
	}
}

// bytes returns what was kept, with a line that says how much is missing where it is missing.
func (c *capture) bytes() []byte {
	out := c.head
	if c.dropped > 0 {
		out = append(out, fmt.Sprintf("\n[... %d bytes left out ...]\n", c.dropped)...)
	}
	out = append(out, c.tail[c.next:]...)
	return append(out, c.tail[:c.next]...)
}
