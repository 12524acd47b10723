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
	"slices"
	"strings"
	"sync"

	"github.com/countersign/countersign/internal/regular"
)

// A TokenHash is the SHA-256 of a token: all that is known here of it.
type TokenHash [sha256.Size]byte

// parseTokenHash reads "sha256:" and 64 hexadecimal digits. The error never
// quotes what was written: it may be the token itself.
func parseTokenHash(s string) (TokenHash, error) {
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
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it is only read
	var all []TokenHash
	lines := bufio.NewScanner(io.LimitReader(f, maxTokens))
	for n := 1; lines.Scan(); n++ {
		word, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(lines.Text(), "\ufeff")), " ")
		if word == "" || strings.HasPrefix(word, "#") {
			continue
		}
		h, err := parseTokenHash(word)
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
	t := &Tokens{file: file}
	err := t.read(list)
	return t.hashes, err
}

// read reads the tokens of a list and of the file.
func (t *Tokens) read(list []string) error {
	var ofList, ofFile error
	t.listed, ofList = listedTokens(list)
	if t.file != "" {
		if t.inFile, ofFile = readTokens(t.file); ofFile != nil {
			ofFile = fmt.Errorf("tokens_file: %w", ofFile)
		}
	}
	t.hashes = slices.Concat(t.listed, t.inFile)
	return errors.Join(ofList, ofFile)
}

func listedTokens(list []string) ([]TokenHash, error) {
	var all []TokenHash
	var problems []error
	for i, t := range list {
		h, err := parseTokenHash(t)
		if err != nil {
			problems = append(problems, fmt.Errorf("tokens[%d]: %w", i, err))
			continue
		}
		all = append(all, h)
	}
	return all, errors.Join(problems...)
}

// Credentials are the tokens of a configuration as they are now.
type Credentials struct {
	Clients []*Tokens // of the gateways, by gateway and client
	Agents  []*Tokens // of the remote agents
	People  []*Tokens // of the web

	taking sync.Mutex // held while a file that changed is taken up: one at a time
}

// NewCredentials returns the tokens of a configuration that [Config.Check] has accepted.
func NewCredentials(c Config, log *slog.Logger) (*Credentials, error) {
	all := &Credentials{}
	var problems []error
	add := func(to *[]*Tokens, of string, list []string, file string) {
		t := &Tokens{of: of, file: file, log: log, all: all, about: aboutFile(file)}
		*to, problems = append(*to, t), append(problems, t.read(list))
	}
	for _, r := range c.clients() {
		add(&all.Clients, r.Name, r.Tokens, r.TokensFile)
	}
	for _, a := range c.RemoteAgents {
		add(&all.Agents, a.Name, a.Tokens, a.TokensFile)
	}
	for _, p := range c.Web.People {
		add(&all.People, string(p.User), p.Tokens, p.TokensFile)
	}
	return all, errors.Join(problems...)
}

// Follow takes up the tokens that a changed configuration lists. It has the same gateways,
// clients, remote agents and people.
func (c *Credentials) Follow(now Config) {
	for i, r := range now.clients() {
		c.Clients[i].follow(r.Tokens)
	}
	for i, a := range now.RemoteAgents {
		c.Agents[i].follow(a.Tokens)
	}
	for i, p := range now.Web.People {
		c.People[i].follow(p.Tokens)
	}
}

// other returns whose token one of these is besides, or nothing.
func (c *Credentials) other(than *Tokens, hashes []TokenHash) (of string, found bool) {
	for _, t := range slices.Concat(c.Clients, c.Agents, c.People) {
		if t != than && t.hasAny(hashes) {
			return t.of, true
		}
	}
	return "", false
}

// clients are those of all gateways.
func (c Config) clients() []RemoteAgent {
	var all []RemoteAgent
	for _, g := range c.Gateways {
		all = append(all, g.Remotes()...)
	}
	return all
}

// Tokens are the tokens of a remote agent or a person as they are now: their file
// is read again when it changes, so that one is replaced without a restart. A file
// that cannot be used changes nothing, and that is logged once. Neither can one with a
// token of somebody else: an agent that proved to be a person would approve its own calls.
type Tokens struct {
	of   string
	file string
	log  *slog.Logger
	all  *Credentials // that these are of

	mu     sync.Mutex
	about  os.FileInfo // of the file as it was taken up or could not be read last; nil if there was none
	looked os.FileInfo // of the file as it was looked at last
	listed []TokenHash
	inFile []TokenHash
	hashes []TokenHash // all of these
}

// Now returns the current tokens. The caller must not change the list.
func (t *Tokens) Now(ctx context.Context) []TokenHash {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.file == "" || unchanged(t.about, aboutFile(t.file)) {
		return t.hashes
	}
	// Reading a file compares its tokens with those of the other files. A goroutine that
	// holds the lock of another file must not wait for this one.
	t.mu.Unlock()
	t.all.taking.Lock()
	defer t.all.taking.Unlock()
	t.mu.Lock()
	t.take(ctx)
	return t.hashes
}

// take takes up the file if it has changed. The caller holds the locks.
func (t *Tokens) take(ctx context.Context) {
	now := aboutFile(t.file)
	if unchanged(t.about, now) {
		return
	}
	read, err := readTokens(t.file)
	other, found := t.all.other(t, read)
	if found {
		err = fmt.Errorf("one of them is also one of %s", other)
	}
	if err != nil && !unchanged(t.looked, now) {
		t.log.LogAttrs(ctx, slog.LevelError, "tokens cannot be read; those from before count",
			slog.String("of", t.of), slog.String("file", t.file), slog.Any("err", err))
	}
	t.looked = now
	if found { // until the other no longer has it
		return
	}
	t.about = now
	if err != nil {
		return
	}
	t.inFile = read
	t.hashes = slices.Concat(t.listed, t.inFile)
	t.log.LogAttrs(ctx, slog.LevelInfo, "tokens were read again",
		slog.String("of", t.of), slog.String("file", t.file), slog.Int("tokens", len(read)))
}

// hasAny reports whether one of these is a token here. One that the file has lost since it
// was read, as when it is given to another agent, is none any more.
func (t *Tokens) hasAny(hashes []TokenHash) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	has := func() bool {
		return slices.ContainsFunc(t.hashes, func(h TokenHash) bool { return slices.Contains(hashes, h) })
	}
	if !has() {
		return false
	}
	if t.file == "" {
		return true
	}
	if read, err := readTokens(t.file); err == nil {
		t.inFile = slices.DeleteFunc(slices.Clone(t.inFile), func(h TokenHash) bool { return !slices.Contains(read, h) })
		t.hashes = slices.Concat(t.listed, t.inFile)
	}
	return has()
}

// follow replaces the listed tokens, which [Config.Check] has accepted. Those of the file
// stay, also if it cannot be read now.
func (t *Tokens) follow(list []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.listed, _ = listedTokens(list)
	t.hashes = slices.Concat(t.listed, t.inFile)
}

func aboutFile(path string) os.FileInfo {
	about, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return about
}

// unchanged reports whether a file has the same content, without reading it. One that
// replaced another may have its size and its time.
func unchanged(before, now os.FileInfo) bool {
	if before == nil || now == nil {
		return before == now
	}
	return os.SameFile(before, now) && before.Size() == now.Size() && before.ModTime().Equal(now.ModTime())
}
