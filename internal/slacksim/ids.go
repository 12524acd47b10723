package slacksim

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// nextTS returns a message timestamp that is unique in the workspace and
// larger than every earlier one. The caller holds mu.
func (s *engine) nextTS() string {
	micros := max(s.clock.now().UnixMicro(), s.lastMicros+1)
	s.lastMicros = micros
	return fmt.Sprintf("%d.%06d", micros/1e6, micros%1e6)
}

// nextID returns prefix and a capital suffix, as Slack's object ids look.
func (s *engine) nextID(prefix string) string {
	s.lastID++
	return prefix + randomFrom(alphabet, 6) + fmt.Sprintf("%04d", s.lastID)
}

func newHash(now time.Time) string {
	return strconv.FormatInt(now.Unix(), 10) + "." + randomFrom("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 8)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

func randomFrom(letters string, n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}

// shortID is a block_id or an action_id, for those without.
func shortID() string {
	return randomFrom("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+=", 5)
}

// triggerLife is how long a trigger_id can be exchanged.
const triggerLife = 3 * time.Second

// trigger is a person's action that an app may answer with a modal, once.
type trigger struct {
	in     *installation
	user   string
	issued time.Time
	used   bool
	view   string // the modal it happened in
}

// newTrigger issues a trigger_id. The caller holds mu.
func (s *screens) newTrigger(in *installation, user, viewID string) string {
	s.lastID++
	id := fmt.Sprintf("%d.%d.%s", s.clock.now().UnixMicro(), 1_000_000_000+s.lastID, randomHex(16))
	s.triggers[id] = &trigger{in: in, user: user, issued: s.clock.now(), view: viewID}
	return id
}

// exchange looks at a trigger_id without using it up. The caller holds mu.
func (s *screens) exchange(in *installation, id string) (*trigger, string) {
	t := s.triggers[id]
	switch {
	case t == nil || t.in != in:
		return nil, "invalid_trigger_id"
	case t.used:
		return nil, "exchanged_trigger_id"
	case s.clock.now().Sub(t.issued) > triggerLife:
		return nil, "expired_trigger_id"
	}
	return t, ""
}
