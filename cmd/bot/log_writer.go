package main

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/countersign/countersign/internal/config"
)

// logPatience is how long a record waits for whoever reads the log.
const logPatience = time.Second

// A logWriter writes the log for a program that must go on if nobody reads it, as when
// the other end of a pipe hangs. A record that cannot be written for a second is left
// out, and so are all others until writing works again; then it writes how many were.
// Otherwise a record has been written when Write returns. Write never fails.
type logWriter struct {
	form    config.Environment // of the record that says how many were left out
	records chan []byte
	written chan struct{}

	mu      sync.Mutex
	stuck   bool // a record is being written that Write has not waited for
	dropped int
}

// logsTo returns what a command writes to instead of stderr: a log, if it serves until
// it is stopped.
func logsTo(stderr io.Writer, args []string, form config.Environment) io.Writer {
	if len(args) == 0 || args[0] != "serve" && args[0] != "mcp-gateway" {
		return stderr
	}
	return newLogWriter(stderr, form)
}

// newLogWriter returns a logWriter on w for a log in this form.
func newLogWriter(w io.Writer, form config.Environment) *logWriter {
	l := &logWriter{form: form, records: make(chan []byte), written: make(chan struct{}, 1)}
	go func() {
		for r := range l.records {
			_, _ = w.Write(r) // an error of the log cannot be reported
			l.written <- struct{}{}
		}
	}()
	return l
}

// Write implements [io.Writer].
func (l *logWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.stuck {
		select {
		case <-l.written:
			l.stuck = false
		default:
			l.dropped++
			return len(p), nil
		}
	}
	var record bytes.Buffer
	if l.dropped > 0 {
		l.form.NewLogger(&record).Error("nobody read the log, and records were left out", slog.Int("records", l.dropped))
		l.dropped = 0
	}
	record.Write(p)
	l.records <- record.Bytes()
	patience := time.NewTimer(logPatience)
	defer patience.Stop()
	select {
	case <-l.written:
	case <-patience.C:
		l.stuck = true
	}
	return len(p), nil
}
