package state_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

// lines counts what is logged, by message.
type lines struct {
	slog.Handler

	mu sync.Mutex
	n  map[string]int
}

func (l *lines) Handle(ctx context.Context, r slog.Record) error {
	l.mu.Lock()
	l.n[r.Message]++
	l.mu.Unlock()
	return l.Handler.Handle(ctx, r)
}

func (l *lines) of(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.n[message]
}

func (l *lines) all() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, m := range l.n {
		n += m
	}
	return n
}

// looks counts how often a client asks a partition for work.
func looks(n *atomic.Int64) statetest.Hook {
	return func(_ context.Context, cmds []redis.Cmder, send func() error) error {
		for _, cmd := range cmds {
			if args := cmd.Args(); cmd.Name() == "evalsha" && args[1] == state.SweepHash {
				n.Add(1)
			}
		}
		return send()
	}
}

// refusedWrites checks that nobody is kept busy by a server that answers what is
// read and refuses what is written, until the clock moves. refuse makes the
// server of c such a one, and allow ends that.
func refusedWrites(t *testing.T, c redis.UniversalClient, refuse, allow func()) {
	t.Helper()
	const (
		stops, returns = "what became of work cannot be stored; it is tried again, less and less often", "what becomes of work is stored again"
		items, rounds  = 3, 6
		longest        = 30 * time.Second
	)
	for name, answer := range map[string]error{
		"a handler that fails":               errors.New("no"),
		"a handler that is content":          nil,
		"a handler that wants to come again": later(0),
	} {
		t.Run(name, func(t *testing.T) {
			k := newClock()
			log := &lines{Handler: slog.NewTextHandler(t.Output(), nil), n: map[string]int{}}
			var looked atomic.Int64
			c := harmed(t, c, func([]byte) statetest.Fault { return statetest.None })
			c.AddHook(looks(&looked))
			s, err := state.Open(t.Context(), state.Options{Client: c, Prefix: prefix(), Now: k.Now, Log: slog.New(log)})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			var batches []string
			for n := range items {
				opens := openBatch(t, ids{1 + n/2}.batch(string(rune('a'+n))), ids{1}.run("r"), 1, time.Time{})
				require.NoError(t, s.Commit(t.Context(), agentrun.Commit{Opens: &opens}))
				batches = append(batches, string(opens.Batch.ID))
			}
			before := log.all()
			refuse()
			t.Cleanup(allow)

			var calls atomic.Int64
			d := state.NewDue(s, state.DueOptions{Sweep: 5 * time.Millisecond, Grace: grace})
			work(t, d, state.Cards, func(context.Context, string) error {
				calls.Add(1)
				return answer
			})
			// settled waits until the loop has looked again and again.
			settled := func() {
				t.Helper()
				n := looked.Load() + 40*approvals.Partitions
				statetest.Await(t, "more looks", func() bool { return looked.Load() >= n })
			}
			statetest.Await(t, "the first calls", func() bool { return calls.Load() >= 2 })
			settled()
			for round := range int64(rounds) {
				require.LessOrEqual(t, calls.Load(), items*(round+1), "each item is handled once until time passes")
				require.Equal(t, 1, log.all()-before, "said once: %v", log.n)
				k.Advance(longest)
				settled()
			}
			require.Equal(t, 1, log.of(stops))
			require.GreaterOrEqual(t, calls.Load(), int64(2*rounds), "it is still tried")

			allow()
			k.Advance(longest)
			statetest.Await(t, "the word that it is over", func() bool { return log.of(returns) == 1 })
			for _, id := range batches {
				statetest.Await(t, "what became of "+id, func() bool { return score(t, s, state.Cards, id).After(k.Now()) })
			}
			require.Equal(t, 1, log.of(stops))
			require.Equal(t, 1, log.of(returns))
		})
	}
}

// A client with a new password, or one too many, is refused before it can ask. The
// commands of a pipeline have found nothing then, and no answer may be read from them.
func TestWhatARefusedConnectionAsksIsNotAnswered(t *testing.T) {
	t.Parallel()
	server := statetest.NewInstance(t)
	ctx := t.Context()
	admin := func(words ...any) { require.NoError(t, server.Client.Do(ctx, words...).Err()) }
	admin("ACL", "SETUSER", "bot", "on", ">secret", "~*", "&*", "+@all")
	s, err := state.Open(ctx, state.Options{URL: "redis://bot:secret@" + server.Addr, Durability: state.Fsync})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	id := string(ids{3}.batch("b"))
	require.NoError(t, s.CommitMemo(ctx, id, "cards", []byte("x"), 0, 0))
	key := approvals.ArgsKey{Batch: ids{3}.batch("b"), Digest: approvals.Digest{1}}

	admin("ACL", "SETUSER", "bot", "off")
	admin("CLIENT", "KILL", "USER", "bot")
	require.Equal(t, "redis refuses the user or the password of the bot", state.NoAnswer(s.Ping(ctx)))
	ahead := s.Prefetch(ctx, approvals.Reads{Memos: []approvals.MemoKey{{ID: id, Surface: "cards"}}, Args: []approvals.ArgsKey{key}})
	together, _ := s.SharePipe(ctx, 1)
	for name, ask := range map[string]func() error{
		"a document that is read ahead":  func() error { _, _, err := s.Memo(ahead, id, "cards"); return err },
		"arguments that are read ahead":  func() error { _, err := s.Args(ahead, key.Batch, key.Digest); return err },
		"a document that is read along":  func() error { _, _, err := s.Memo(together, id, "cards"); return err },
		"a commit with a barrier":        func() error { return s.CommitMemo(ctx, id, "cards", []byte("y"), 1, 0) },
		"a commit together with a group": func() error { return s.CommitMemo(together, id, "cards", []byte("y"), 1, 0) },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorContains(t, ask(), "WRONGPASS") })
	}
}

// The words of the error would hold the address of the server.
func TestACertificateThatIsNotAcceptedIsSaid(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.StartTLS()
	t.Cleanup(server.Close)
	c := redis.NewClient(&redis.Options{Addr: server.Listener.Addr().String(), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12}, MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.Equal(t, "redis shows a certificate that the bot does not accept; the log says why", state.NoAnswer(c.Ping(t.Context()).Err()))
}

// A server that asks for certificates ends the handshake with the bot.
func TestAServerThatDoesNotAcceptOurCertificateIsSaid(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	c := redis.NewClient(&redis.Options{Addr: server.Listener.Addr().String(), TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	err := c.Ping(t.Context()).Err()
	require.ErrorContains(t, err, "certificate required")
	require.Equal(t, "redis does not accept the certificate of the bot; the log says why", state.NoAnswer(err))
}
