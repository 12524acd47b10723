package slacksim

import (
	"crypto/rand"
	"encoding/hex"
	"strconv"
	"time"
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func newHash(now time.Time) string {
	return strconv.FormatInt(now.Unix(), 10) + "." + randomFrom("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", 8)
}

func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// randomUUID has the form of a UUID, as the ids of envelopes and of what clients
// write have.
func randomUUID() string {
	s := randomHex(16)
	return s[:8] + "-" + s[8:12] + "-4" + s[13:16] + "-a" + s[17:20] + "-" + s[20:]
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
