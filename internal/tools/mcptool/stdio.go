package mcptool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/countersign/countersign/internal/approvals"
)

// defaultPath is the PATH of a program whose configuration names none.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// How long a program may take to end: after its input was closed, and after it
// was told to.
const (
	endsWithin = 2 * time.Second
	diesWithin = 2 * time.Second
)

// A program is a running server over stdio.
type program struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	words  tail // of its standard error
	quiet  silence
	ended  chan struct{} // it has been waited for
	ending sync.Once
}

// startProgram starts the program of a server in a process group of its own. It
// has the variables of the configuration and three descriptors, and nothing
// else of this process.
func startProgram(s Server) (*program, error) {
	path, err := exec.LookPath(s.Command)
	if err != nil {
		return nil, fmt.Errorf("find the program: %w", err)
	}
	theirIn, ourOut, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	ourIn, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a pipe: %w", err), theirIn.Close(), ourOut.Close())
	}
	env := maps.Clone(s.Env)
	if env == nil {
		env = map[string]string{}
	}
	if env["PATH"] == "" {
		env["PATH"] = defaultPath
	}
	p := &program{in: ourOut, out: ourIn, ended: make(chan struct{})}
	p.cmd = exec.Command(path, s.Args...) //nolint:gosec,noctx // the operator names the program; it ends with close
	p.cmd.Dir = os.TempDir()
	for _, name := range slices.Sorted(maps.Keys(env)) {
		p.cmd.Env = append(p.cmd.Env, name+"="+env[name])
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirIn, theirOut, &p.words
	p.cmd.WaitDelay = diesWithin
	err = launch(p.cmd, p.ended)
	_, _ = theirIn.Close(), theirOut.Close() // the program has its own
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the program: %w", err), ourIn.Close(), ourOut.Close())
	}
	return p, nil
}

// close ends the program and everything that it started in its group: its input
// is closed, then it is told to end, then it is killed.
func (p *program) close() error {
	p.ending.Do(func() {
		_ = p.in.Close()
		if !p.endsWithin(endsWithin) {
			terminate(p.cmd)
			if !p.endsWithin(diesWithin) {
				kill(p.cmd)
			}
		}
		<-p.ended
		_ = p.out.Close()
	})
	return nil
}

func (p *program) endsWithin(d time.Duration) bool {
	select {
	case <-p.ended:
		return true
	case <-time.After(d):
		return false
	}
}

// A silence of a program lasts from the first request that has no answer until it writes
// any message.
type silence struct {
	mu    sync.Mutex
	timer *time.Timer // nil while the program is not silent
	over  bool        // its limit has passed
}

func (s *silence) begins(limit time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		return
	}
	var timer *time.Timer
	timer = time.AfterFunc(limit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = s.timer == timer
	})
	s.timer = timer
}

func (s *silence) ends() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer, s.over = nil, false
}

func (s *silence) tooLong() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over
}

// stdio is the transport of a running program.
type stdio struct {
	program *program
	tap     *tap
	log     *slog.Logger
	reads   time.Duration // how long the program may take to read a message
}

// Connect implements [mcp.Transport].
func (t *stdio) Connect(ctx context.Context) (mcp.Connection, error) {
	r := &lines{from: bufio.NewReaderSize(t.program.out, 64<<10), tap: t.tap, log: t.log, heard: t.program.quiet.ends, close: t.program.close}
	return (&mcp.IOTransport{Reader: r, Writer: &messages{t.program, t.tap, t.reads}, MaxLineLength: maxMessage}).Connect(ctx)
}

// messages is what is written to a program.
type messages struct {
	program *program
	tap     *tap
	reads   time.Duration
}

// Write is called with one message. The end of a call does not end it, so a program that
// reads nothing any more is ended instead: it would hold the calls of everyone.
func (m *messages) Write(b []byte) (int, error) {
	defer time.AfterFunc(m.reads, func() { _ = m.program.close() }).Stop()
	if e := m.tap.sending(b); e != nil {
		e.leaves()
		m.program.quiet.begins(2 * m.reads)
	}
	return m.program.in.Write(b)
}

func (m *messages) Close() error { return m.program.close() }

// lines is what a program writes, without the lines that are no messages: the SDK would
// end the connection at one that it cannot read, and with it the calls of everyone. A line
// that is longer than a message may be ends it.
type lines struct {
	from  *bufio.Reader
	rest  []byte
	tap   *tap
	log   *slog.Logger
	noise int
	heard func() // a message has come
	close func() error
}

var errTooLong = fmt.Errorf("the server sent a message of more than %d bytes", maxMessage)

func (l *lines) Read(b []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.line()
		if _, unreadable := jsonrpc.DecodeMessage(line); unreadable == nil {
			l.heard()
			l.tap.arrived(line)
			l.rest = append(line, '\n')
			break
		}
		if e := l.tap.answers(line); e != nil {
			l.heard()
			e.fails("The server's answer could not be read.")
			l.rest = append(e.unanswered(), '\n')
			break
		}
		if len(line) > 0 {
			if l.noise++; l.noise == 1 {
				l.log.Warn("an MCP server writes to standard output what is no message; it is ignored")
			}
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(b, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *lines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.from.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, errTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return bytes.TrimSpace(line), err // the SDK reads nothing behind a message
	}
}

func (l *lines) Close() error { return l.close() }

// A tail keeps the end of what was written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const (
	maxTail = 16 << 10
	maxLast = 2 << 10 // of it is shown; a secret that is cut off lies before that
)

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, b...)
	if over := len(t.kept) - maxTail; over > 0 {
		t.kept = append([]byte(nil), t.kept[over:]...)
	}
	return len(b), nil
}

// end returns the last of it, without secrets.
func (t *tail) end(conceal func(string) string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	last := conceal(string(bytes.TrimSpace(t.kept)))
	return approvals.Visible(strings.ToValidUTF8(last[max(0, len(last)-maxLast):], ""))
}

var _ io.Writer = (*tail)(nil)
