package state

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/countersign/countersign/internal/approvals"
)

const (
	// believed is how long a write that went through is a sign that the next
	// one will.
	believed = 5 * time.Second
	// between is the least time between two writes that only ask.
	between = time.Second
)

// writes remembers how the last changes went.
type writes struct {
	mu     sync.Mutex
	failed map[int]error // by partition: the servers of a cluster fail one by one
	last   time.Time     // when one went through
	// Redis did not permit a command of a change. An empty change does not need them all.
	forbidden bool

	asking sync.Mutex // held while someone asks
	asked  time.Time
	answer error
}

// note records how a change of the partition went. A change that its caller
// gave up is ignored.
func (w *writes) note(partition int, now time.Time, err error) {
	if errors.Is(err, context.Canceled) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		delete(w.failed, partition)
		w.last = now
		return
	}
	w.forbidden = w.forbidden || notPermitted(err)
	if w.failed == nil {
		w.failed = make(map[int]error)
	}
	w.failed[partition] = err
}

// doubtful returns a partition in which it is not known that changes go
// through, if there is one.
func (w *writes) doubtful(now time.Time) (partition int, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := range w.failed {
		return n, true
	}
	return int(now.Unix() % approvals.Partitions), w.forbidden || now.Sub(w.last) >= believed
}

// permitted asks again for the permissions of changes, if one was missing.
func (w *writes) permitted(ctx context.Context, ask func(ctx context.Context) error) error {
	w.mu.Lock()
	forbidden := w.forbidden
	w.mu.Unlock()
	if !forbidden {
		return nil
	}
	if err := ask(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forbidden = false
	return nil
}

// Writable reports whether a change would be stored and be durable. While
// changes go through it costs nothing; after one that did not, and when there
// was none for some seconds, it makes an empty one, at most once a second. The
// error's [Refusal] has words for people.
func (s *conn) Writable(ctx context.Context) error {
	w := &s.writes
	if _, ok := w.doubtful(s.now()); !ok {
		return nil
	}
	w.asking.Lock()
	defer w.asking.Unlock()
	for {
		n, ok := w.doubtful(s.now())
		if !ok {
			return nil
		}
		if w.answer != nil && s.now().Sub(w.asked) < between {
			return w.answer
		}
		if w.answer = s.confirm(ctx, n, s.barrier); w.answer == nil {
			w.answer = w.permitted(ctx, s.checkPermissions)
		}
		w.asked = s.now()
		if w.answer != nil {
			return w.answer
		}
	}
}

// NoAnswer says why a [Store.Ping] failed, in words that hold no address. A server that
// cannot write to its disk refuses even that.
func NoAnswer(err error) string {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "redis shows a certificate that the bot does not accept; the log says why"
	}
	if RefusesCertificate(err) {
		return "redis does not accept the certificate of the bot; the log says why"
	}
	if unanswered(err) {
		return "redis does not answer"
	}
	return Refusal(err)
}

// RefusesCertificate reports whether the server ended the TLS handshake: mostly because of the
// certificate of the bot, or because it has none.
func RefusesCertificate(err error) bool {
	e, ok := errors.AsType[*net.OpError](err)
	return ok && e.Op == "remote error"
}

// notPermitted reports whether the server does not permit a command to the user of the bot, or
// does not have it. Of a command within a script Redis says that in words: up to 7.0 in the first
// ones, from 7.2 on and as Valkey in the second ones.
func notPermitted(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command") ||
		strings.Contains(err.Error(), "The user executing the script can't ") || redis.HasErrorPrefix(err, "ACL failure in script"))
}

// Refusal says why the server does not take a change, in words that hold
// nothing of the change.
func Refusal(err error) string {
	for _, known := range []struct{ prefix, words string }{
		{"OOM", "redis is full (maxmemory)"},
		{"READONLY", "redis is a read-only replica"},
		{"MISCONF", "redis cannot write to its disk"},
		{"NOREPLICAS", "redis misses replicas (min-replicas-to-write)"},
		{"CLUSTERDOWN", "the redis cluster is down"},
		{"LOADING", "redis is loading its data"},
		{"MASTERDOWN", "redis is a replica that has lost its master"},
		{"BUSY ", "redis is busy with a script that takes too long"},
		{"WRONGPASS", "redis refuses the user or the password of the bot"},
		{"NOAUTH", "redis refuses the user or the password of the bot"},
		{"max number of clients reached", "redis has too many clients (maxclients)"},
	} {
		if says(err, known.prefix) {
			return known.words
		}
	}
	var e *notDurableError
	switch {
	case notPermitted(err):
		return "redis does not permit the bot a command that it needs (ACL); the log says which"
	case errors.As(err, &e):
		return "redis does not confirm that changes are durable: " + e.why
	case errors.Is(err, context.DeadlineExceeded):
		return "redis takes changes too slowly"
	}
	return "redis takes no changes"
}

// says reports whether Redis answered with this error. Before Redis 7 an error within a script
// comes in the words of the script's.
func says(err error, prefix string) bool {
	return redis.HasErrorPrefix(err, prefix) || strings.Contains(err.Error(), ": -"+strings.TrimSpace(prefix)+" ")
}

// Passes reports whether an error of Redis can end by itself: a connection broke, a server
// starts or has no successor yet, or it takes no changes, as while it is full or misses replicas.
// That a server keeps no log is its setting, which does not change by itself.
func Passes(err error) bool {
	if err == nil || errors.Is(err, approvals.ErrNotDurable) && strings.Contains(err.Error(), "appendonly is disabled") {
		return false
	}
	for _, prefix := range []string{
		"LOADING", "MASTERDOWN", "CLUSTERDOWN", "BUSY ", "READONLY", "OOM", "MISCONF", "NOREPLICAS", "max number of clients reached",
	} {
		if says(err, prefix) {
			return true
		}
	}
	_, broke := errors.AsType[net.Error](err)
	_, weak := errors.AsType[*notDurableError](err)
	_, skewed := errors.AsType[*SkewError](err)
	return broke || weak || skewed || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}
