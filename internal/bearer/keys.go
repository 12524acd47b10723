package bearer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/countersign/countersign/internal/regular"
)

// How long fetched keys are used: without looking again; at least between two
// looks for a key that is not among them, so that a made-up token costs the issuer
// nothing; and at most while the issuer does not answer, because a key that it
// took away must end.
const (
	keysFresh  = 10 * time.Minute
	keysAgain  = 30 * time.Second
	keysStale  = time.Hour
	maxWaiting = 100       // tokens that wait for an answer of an issuer, of those that a kept key fits and has not signed
	maxKeys    = 256 << 10 // bytes that are fetched
	maxKeyFile = 16 << 20  // bytes of a file
)

// A keyring keeps the keys of issuers by where they are read. Keys in a file are
// read anew when the file changes.
type keyring struct {
	http *http.Client
	now  func() time.Time
	log  *slog.Logger

	mu   sync.Mutex
	sets map[string]*keySet
}

type keySet struct {
	mu    sync.Mutex // held while the keys are read: one look at a time
	keys  jose.JSONWebKeySet
	read  time.Time   // when they were
	tried time.Time   // when that was tried last
	told  time.Time   // when the log last said that it failed
	wrong error       // why it did
	about os.FileInfo // of a file, as it was read last

	meanwhile atomic.Pointer[keptKeys] // nil for keys of a file, whose reading takes no time
	asking    atomic.Bool              // the issuer is asked now
	waiting   atomic.Int32             // how many tokens wait for its answer that a kept key fits and has not signed
}

// keptKeys are for those who come while an issuer is asked, which can take seconds.
type keptKeys struct {
	keys  jose.JSONWebKeySet
	until time.Time
}

// errUnfit is [ErrUnavailable] of a token that a key fits which has not signed it. As a rule
// such a token is a forged one, so it counts toward the limit of its address.
var errUnfit = fmt.Errorf("%w again, and those that were read have not signed the token", ErrUnavailable)

// verify reports whether the key of an issuer that a token names has signed it. A key that
// has not may be an old one: an issuer can give its id to another, and a token need not
// name any.
func (k *keyring) verify(ctx context.Context, from, id, algorithm string, signed func(jose.JSONWebKey) bool) error {
	unfit := false
	verified := func(by jose.JSONWebKeySet) bool {
		key, ok := chosen(by, id, algorithm)
		unfit = ok && !signed(key)
		return ok && !unfit
	}
	s := k.set(from)
	if !s.mu.TryLock() {
		if kept := s.meanwhile.Load(); kept != nil && k.now().Before(kept.until) {
			if verified(kept.keys) {
				return nil
			}
			if unfit && s.asking.Load() {
				defer s.waiting.Add(-1)
				if s.waiting.Add(1) > maxWaiting {
					return ErrUnavailable
				}
			}
		}
		s.mu.Lock()
	}
	defer s.mu.Unlock()
	now := k.now()
	err := s.refresh(ctx, k, from, now, keysFresh)
	s.tell(ctx, k, from, now, err)
	if !s.count(now) {
		return ErrUnavailable
	}
	if verified(s.keys) {
		return nil
	}
	if now.Sub(s.tried) >= keysAgain { // the issuer may have a new one
		err = s.refresh(ctx, k, from, now, 0)
		s.tell(ctx, k, from, now, err)
		if verified(s.keys) {
			return nil
		}
	}
	switch {
	case err == nil && s.wrong == nil:
		return fmt.Errorf("%w: it is not signed with a key of its issuer, which has %d", ErrRefused, len(s.keys.Keys))
	case unfit:
		return errUnfit
	}
	return ErrUnavailable
}

// count reports whether the keys that were read may be used.
func (s *keySet) count(now time.Time) bool { return !s.read.IsZero() && now.Sub(s.read) < keysStale }

// tell says in the log, once in a while, that keys cannot be read: anyone can send tokens.
func (s *keySet) tell(ctx context.Context, k *keyring, from string, now time.Time, err error) {
	counts, pause := s.count(now), keysAgain
	if counts {
		pause = keysFresh
	}
	if err == nil || now.Sub(s.told) < pause {
		return
	}
	s.told = now
	if counts {
		k.log.WarnContext(ctx, "cannot read the keys of an issuer again; those that were read count for now",
			slog.String("from", from), slog.Time("until", s.read.Add(keysStale)), slog.Any("err", err))
		return
	}
	k.log.ErrorContext(ctx, "cannot read the keys of an issuer", slog.String("from", from), slog.Any("err", err))
}

func (k *keyring) set(from string) *keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.sets == nil {
		k.sets = map[string]*keySet{}
	}
	if k.sets[from] == nil {
		k.sets[from] = &keySet{}
	}
	return k.sets[from]
}

// chosen returns the key with the id. A token without one is taken only if there is
// no choice.
func chosen(of jose.JSONWebKeySet, id, algorithm string) (jose.JSONWebKey, bool) {
	var found []jose.JSONWebKey
	for _, key := range of.Keys {
		if (id == "" || key.KeyID == id) && strong(key, algorithm) {
			found = append(found, key)
		}
	}
	if len(found) != 1 {
		return jose.JSONWebKey{}, false
	}
	return found[0], true
}

func (s *keySet) refresh(ctx context.Context, k *keyring, from string, now time.Time, fresh time.Duration) error {
	if isURL(from) {
		if !s.read.IsZero() && now.Sub(s.read) < fresh {
			return nil
		}
		if fresh > 0 && !s.tried.IsZero() && now.Sub(s.tried) < keysAgain {
			return fmt.Errorf("they were asked for less than %s ago: %w", keysAgain, s.wrong)
		}
		s.tried = now
		s.asking.Store(true)
		raw, err := k.fetch(ctx, from)
		s.asking.Store(false)
		if err == nil {
			err = s.take(raw, now)
		}
		s.wrong = err
		s.keep(now)
		return err
	}
	info, err := os.Stat(from)
	if err != nil {
		return fmt.Errorf("look at the keys: %w", err)
	}
	s.tried = now
	// A file that replaced another may have its time.
	if s.about != nil && os.SameFile(s.about, info) && s.about.Size() == info.Size() && s.about.ModTime().Equal(info.ModTime()) {
		s.read = now
		return nil
	}
	raw, err := regular.Read(from, maxKeyFile)
	if err != nil {
		return fmt.Errorf("read the keys: %w", err)
	}
	if err := s.take(raw, now); err != nil {
		return err
	}
	s.about = info
	return nil
}

// keep says for how long the keys count while the issuer is asked: as long as they are
// fresh, and longer only after a look that has just failed.
func (s *keySet) keep(now time.Time) {
	until := s.read.Add(keysFresh)
	if again := now.Add(2 * keysAgain); s.wrong != nil && again.After(until) {
		until = again
	}
	if stale := s.read.Add(keysStale); until.After(stale) {
		until = stale
	}
	s.meanwhile.Store(&keptKeys{s.keys, until})
}

// take reads a JWKS. It leaves out keys of a kind that it does not know, as RFC 7517
// says: an issuer may have others for others.
func (s *keySet) take(raw []byte, now time.Time) error {
	var set struct {
		Keys json.RawMessage `json:"keys"`
	}
	var all []json.RawMessage
	err := json.Unmarshal(raw, &set)
	if err == nil && set.Keys == nil {
		err = errors.New("the document has no list of keys") // but an error, for example
	}
	if err == nil {
		err = json.Unmarshal(set.Keys, &all)
	}
	if err != nil {
		return fmt.Errorf("understand the keys: %w", err)
	}
	var known jose.JSONWebKeySet
	var unknown error
	for _, one := range all {
		var key jose.JSONWebKey
		if err := json.Unmarshal(one, &key); err != nil {
			unknown = err
			continue
		}
		known.Keys = append(known.Keys, key)
	}
	if len(known.Keys) == 0 && unknown != nil {
		return fmt.Errorf("understand the keys: %w", unknown)
	}
	s.keys, s.read = known, now
	return nil
}

func (k *keyring) fetch(ctx context.Context, from string) ([]byte, error) {
	q, err := http.NewRequestWithContext(context.WithoutCancel(ctx), http.MethodGet, from, http.NoBody) // for everybody who waits
	if err != nil {
		return nil, fmt.Errorf("ask for the keys: %w", err)
	}
	answer, err := k.http.Do(q)
	if err != nil {
		return nil, fmt.Errorf("ask for the keys: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("ask for the keys: the answer is %s", answer.Status)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, maxKeys+1))
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	if len(raw) > maxKeys {
		return nil, fmt.Errorf("read the keys: there are more than %d bytes", maxKeys)
	}
	return raw, nil
}

func isURL(from string) bool {
	return strings.HasPrefix(from, "https://") || strings.HasPrefix(from, "http://")
}
