package redisserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/state"
)

// ErrMissing says that there is no redis-server, and how to get one.
var ErrMissing = errors.New("there is no redis-server in the PATH. Install it (apt-get install redis-server, brew install redis)")

// names are the names of the program. Valkey is a fork of Redis that works the same.
var names = []string{"redis-server", "valkey-server"}

var versionWords = regexp.MustCompile(`\bv=([0-9.]+)`)

// A Binary is a redis-server that is installed here.
type Binary struct {
	Path    string
	Version string
}

// Find returns the redis-server in the PATH, or an error that says what to do if
// there is none, or one that is too old.
func Find(ctx context.Context) (Binary, error) {
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		cmd := exec.CommandContext(ctx, path, "--version") //nolint:gosec // it is the operator's PATH
		cmd.Env, cmd.WaitDelay = environ(), time.Second
		out, err := cmd.CombinedOutput()
		said := strings.TrimSpace(string(out))
		if err != nil {
			return Binary{}, fmt.Errorf("run %s --version: %w: %s", path, err, said)
		}
		b := Binary{Path: path}
		if m := versionWords.FindStringSubmatch(said); m != nil {
			b.Version = m[1]
		}
		switch supported, known := state.Supported(b.Version); {
		case !known:
			return Binary{}, fmt.Errorf("%s does not report its version, which must be %s or newer: %q", path, state.OldestRedis, said)
		case !supported:
			return Binary{}, fmt.Errorf("%s is version %s; install %s or newer", path, b.Version, state.OldestRedis)
		}
		return b, nil
	}
	return Binary{}, ErrMissing
}

// environ is the environment of the server: it needs none of our secrets.
func environ() []string { return []string{"PATH=" + os.Getenv("PATH")} }
