package wire

import "sync"

var buffers sync.Pool

// Buffer returns MaxData bytes of any content. Whoever moves a lot takes them from here and gives them back with Recycle: a new one for each
// frame of a flood keeps the collector busier than the flood itself, and a short command must not pay for what a flood needs. Safe for
// concurrent use.
func Buffer() []byte {
	if b, pooled := buffers.Get().(*[]byte); pooled {
		return (*b)[:MaxData]
	}
	return make([]byte, MaxData)
}

// Recycle takes back what Buffer gave, or a part of it from its beginning, that nobody uses any more. Anything else is left to the collector.
func Recycle(b []byte) {
	if cap(b) == MaxData {
		buffers.Put(&b)
	}
}
