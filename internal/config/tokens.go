package config

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// A TokenHash is the SHA-256 of a token: all that is known here of it.
type TokenHash [sha256.Size]byte

// ParseTokenHash reads "sha256:" and 64 hexadecimal digits. The error never
// quotes what was written: it may be the token itself.
func ParseTokenHash(s string) (TokenHash, error) {
	digits, ok := strings.CutPrefix(s, "sha256:")
	raw, err := hex.DecodeString(digits)
	if !ok || err != nil || len(raw) != sha256.Size {
		return TokenHash{}, errors.New("is not sha256: and 64 hexadecimal digits; write the SHA-256 of the token, never the token itself")
	}
	return TokenHash(raw), nil
}

// maxTokens is how many bytes a file of tokens may have.
const maxTokens = 1 << 20

// readTokens reads a file of tokens: one on a line, with a comment behind it if
// there is one; a line that begins with # is a comment.
func readTokens(path string) ([]TokenHash, error) {
	f, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	var all []TokenHash
	lines := bufio.NewScanner(io.LimitReader(f, maxTokens))
	for n := 1; lines.Scan(); n++ {
		word, _, _ := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		h, err := ParseTokenHash(word)
		if err != nil {
			return nil, fmt.Errorf("line %d %w", n, err)
		}
		all = append(all, h)
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, errors.New("has no token")
	}
	return all, nil
}

// hashesOf returns the tokens of a list and of a file.
func hashesOf(list []string, file string) ([]TokenHash, error) {
	var all []TokenHash
	var problems []error
	for i, t := range list {
		h, err := ParseTokenHash(t)
		if err != nil {
			problems = append(problems, fmt.Errorf("tokens[%d]: %w", i, err))
			continue
		}
		all = append(all, h)
	}
	if file != "" {
		more, err := readTokens(file)
		if err != nil {
			problems = append(problems, fmt.Errorf("tokens_file: %w", err))
		}
		all = append(all, more...)
	}
	return all, errors.Join(problems...)
}

// Tokens are the tokens of a remote agent or a person as they are now: their file
// is read again when it changes, so that one is replaced without a restart. A file
// that cannot be used changes nothing, and that is logged once.
type Tokens struct {
	of   string
	list []string
	file string
	log  *slog.Logger

	mu     sync.Mutex
	stamp  stamp
	hashes []TokenHash
}

// A stamp tells one content of a file from another without reading it.
type stamp struct {
	size     int64
	modified time.Time
	missing  bool
}

// NewTokens returns the tokens of a remote agent that [Config.Check] has accepted.
func NewTokens(a RemoteAgent, log *slog.Logger) (*Tokens, error) {
	return newTokens(a.Name, a.Tokens, a.TokensFile, log)
}

func newTokens(of string, list []string, file string, log *slog.Logger) (*Tokens, error) {
	t := &Tokens{of: of, list: list, file: file, log: log, stamp: stampOf(file)}
	var err error
	t.hashes, err = hashesOf(list, file)
	return t, err
}

// Now returns the tokens of now. Nobody changes the list.
func (t *Tokens) Now(ctx context.Context) []TokenHash {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == "" {
		return t.hashes
	}
	now := stampOf(t.file)
	if now == t.stamp {
		return t.hashes
	}
	t.stamp = now
	hashes, err := hashesOf(t.list, t.file)
	if err != nil {
		t.log.LogAttrs(ctx, slog.LevelError, "tokens cannot be read; those from before count",
			slog.String("of", t.of), slog.Any("err", err))
		return t.hashes
	}
	t.hashes = hashes
	return hashes
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{missing: true}
	}
	return stamp{size: info.Size(), modified: info.ModTime()}
}
