package main

import (
	"flag"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

var upgrades = flag.Bool("upgrades", false, "build an older version, and upgrade it while people decide")

// older is the version that is upgraded: from before the layout of the store was
// checked, all kinds of due work were read at once, and what has ended was removed.
const older = "00cb3bdd8cb108ab6262f02612aeee24555e5c25"

// builtFrom builds the bot from a commit of this repository.
func builtFrom(t *testing.T, commit string) string {
	t.Helper()
	git := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = filepath.Join("..", "..")
		return cmd
	}
	if out, err := git("cat-file", "-e", commit+"^{commit}").CombinedOutput(); err != nil {
		t.Skipf("The older version is not in this clone of the repository (git fetch --unshallow gets it): %s", out)
	}
	source, path := t.TempDir(), filepath.Join(t.TempDir(), "bot")
	out, err := git("archive", "--format=tar", "--output="+path+".tar", commit).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), "tar", "-xf", path+".tar", "-C", source).CombinedOutput()
	require.NoError(t, err, string(out))
	build := exec.CommandContext(t.Context(), "go", "build", "-o", path, "./cmd/bot")
	build.Dir = source
	out, err = build.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// becomes replaces a bot by another version, as an orchestrator does, and waits until
// that is at work.
func (f *fleet) becomes(u *unit, path string) {
	f.t.Helper()
	u.mu.Lock()
	u.path = path
	before := u.log
	u.mu.Unlock()
	u.ends(syscall.SIGTERM)
	f.until("the other version", func() bool {
		u.mu.Lock()
		defer u.mu.Unlock()
		return u.log != before && listens.MatchString(u.log.String())
	})
}

var listens = regexp.MustCompile(`msg=listening`)

// Replicas are upgraded one by one, while people ask and decide: before, in each
// mixture, and after. Both versions work on one Redis.
func TestAnUpgradeOfOneReplicaAfterTheOtherLosesAndDoublesNothing(t *testing.T) {
	if !*upgrades {
		t.Skip("make soak runs it: it builds an older version (-upgrades)")
	}
	now, err := binary()
	require.NoError(t, err)
	f := newFleet(t, builtFrom(t, older))
	f.starts()
	records, client := f.records()
	var all []*request
	for phase := range len(f.bots) + 1 {
		// Someone decides about one call of each request, so that the first takes all phases.
		all = append(all, f.asks(records))
		f.until("the card", func() bool { return len(all[phase].cards()) > 0 })
		for _, r := range all {
			r.say(1)
		}
		if phase < len(f.bots) {
			f.becomes(f.bots[phase], now)
		}
	}
	open := slices.Clone(all)
	f.until("the answers", func() bool {
		for _, r := range open {
			r.decides()
		}
		open = f.answered(open)
		return len(open) == 0
	})
	f.until("the end of all work", func() bool { return len(dueWork(t, client)) == 0 })
	sum := f.holds(fault{}, all, records)
	t.Logf("%d requests: 0 lost, 0 doubled, %d idempotent calls repeated, %d messages posted twice", len(all), sum.again, sum.copies)
}
