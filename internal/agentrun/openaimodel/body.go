package openaimodel

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// How much is read of what a server sends.
const (
	maxBody      = 8 << 20  // of a stream
	maxChunk     = 1 << 20  // of one event in it: decoded it is many times as large
	maxLast      = 4 << 20  // the same where one event has all of the answer, and the request's tools
	maxErrorBody = 64 << 10 // of an error; the rest is not read
)

var errTooLarge = errors.New("the answer is larger than any answer should be")

type readCloser struct {
	io.Reader
	io.Closer
}

// bounded reads no more than left bytes and says of every byte that it came.
// The end of the allowance is an error, or with cut the end.
type bounded struct {
	r     io.Reader
	left  int
	cut   bool
	heard func()
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.over()
	}
	if len(p) > b.left+1 { // the one byte more tells whether there is more
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	if n > 0 {
		b.heard()
	}
	b.left -= n
	if b.left < 0 {
		return n - 1, b.over()
	}
	return n, err
}

func (b *bounded) over() error {
	if b.cut {
		return io.EOF
	}
	return errTooLarge
}

// dataLines passes on the data lines of an event stream and nothing else, each
// with a blank line after it. Comments that keep a connection alive, event
// names and ids are left out: go-openai would collect them and then could not
// read the error that comes after them.
type dataLines struct {
	r    *bufio.Reader
	most int // bytes of one of them
	rest []byte
	err  error
}

func newDataLines(r io.Reader, most int) *dataLines {
	return &dataLines{r: bufio.NewReader(r), most: most}
}

func (e *dataLines) Read(p []byte) (int, error) {
	for len(e.rest) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.rest, e.err = e.next()
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

// next reads a line and returns it if it carries data.
func (e *dataLines) next() ([]byte, error) {
	line, err := e.r.ReadBytes('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err // half a line is no line
	}
	data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
	data = bytes.TrimSpace(data)
	if !ok || len(data) == 0 {
		return nil, err
	}
	if len(data) > e.most {
		return nil, errTooLarge
	}
	if data[0] == '{' { // go-openai would read an error itself, and drop those it does not know
		return append(append([]byte("data: { "), data[1:]...), "\n\n"...), err
	}
	return append(append([]byte("data: "), data...), "\n\n"...), err
}
