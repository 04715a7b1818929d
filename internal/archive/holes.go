package archive

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// piece is a part of a file that has data.
type piece struct{ at, size int64 }

// encodePieces is the value of a holesRecord.
func encodePieces(size int64, data []piece) string {
	b := strconv.AppendInt(nil, size, 10)
	for _, p := range data {
		b = strconv.AppendInt(append(b, ','), p.at, 10)
		b = strconv.AppendInt(append(b, ','), p.size, 10)
	}
	return string(b)
}

// total is how many bytes the pieces have.
func total(data []piece) (n int64) {
	for _, p := range data {
		n += p.size
	}
	return n
}

var errPieces = errors.New("the list of a sparse file's pieces is wrong")

// decodePieces reads a holesRecord of an entry with so much content. The pieces are in order, do not overlap, lie within the file and hold
// exactly the content.
func decodePieces(text string, content int64) (size int64, data []piece, err error) {
	next := func() int64 {
		word, rest, _ := strings.Cut(text, ",")
		text = rest
		n, parseErr := strconv.ParseInt(word, 10, 64)
		if parseErr != nil || n < 0 {
			err = errPieces
		}
		return n
	}
	size = next()
	var end, sum int64
	for text != "" && err == nil {
		p := piece{at: next()}
		if text == "" {
			return 0, nil, errPieces
		}
		p.size = next()
		if p.at < end || p.at > size || p.size > size-p.at || sum > math.MaxInt64-p.size {
			return 0, nil, errPieces
		}
		end, sum = p.at+p.size, sum+p.size
		data = append(data, p)
	}
	if err != nil || sum != content {
		return 0, nil, errPieces
	}
	return size, data, nil
}
