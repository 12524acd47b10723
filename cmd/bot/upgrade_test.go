package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

var upgrades = flag.Bool("upgrades", false, "build older versions, upgrade them while people decide, and go back to them")

// An older version is one that is upgraded, and that people go back to.
type older struct {
	commit string
	// What it can do with what this version has stored: go on with requests, and list the
	// events of remote agents.
	goesOn, lists bool
}

var olders = []older{
	// From before documents were packed, the layout of the store was checked, all kinds
	// of due work were read at once, and what has ended was removed.
	{"00cb3bdd8cb108ab6262f02612aeee24555e5c25", false, false},
	// From before the facts of a change were one entry.
	{"050c857888583dc854a08441c47cdae42731687e", true, false},
	// From before one message woke replicas for all kinds of due work.
	{"3b7b615e4a0170e8fce014537cb8fab5c2f322c0", true, true},
	// From before processes asked rarely for work, and named themselves in what they commit.
	{"7e98d5506fe9ccc2c81d7837cce8b0f4b0a097d7", true, true},
	// From before calls in doubt were on a list of their own.
	{"b59f9e5d1c4b5b4aa71fb7f58339a18bab0faa70", true, true},
	// From before due work and lists were stored together.
	{"c502e6211a4fca5e7457962614ea08674b1792b2", true, true},
}

func (o older) String() string { return o.commit[:8] }

// builtFrom builds the bot from a commit of this repository.
func builtFrom(t *testing.T, commit string) string {
	t.Helper()
	git := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = filepath.Join("..", "..")
		return cmd
	}
	out, err := git("cat-file", "-e", commit+"^{commit}").CombinedOutput()
	require.NoError(t, err, "the older version is not in this clone of the repository: git fetch --unshallow gets it: %s", out)
	source, path := t.TempDir(), filepath.Join(t.TempDir(), "bot")
	out, err = git("archive", "--format=tar", "--output="+path+".tar", commit).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), "tar", "-xf", path+".tar", "-C", source).CombinedOutput()
	require.NoError(t, err, string(out))
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "./cmd/bot")
	build.Dir, build.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	out, err = build.CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}

// A rollout is a fleet whose bots become another version one by one, while people ask
// and decide in Slack, and an agent elsewhere asks over HTTP.
type rollout struct {
	*fleet

	now     string // the path of this version
	records *state.Store
	client  redis.UniversalClient
	agent   *elsewhere
	all     []*request
	warned  map[string][]string // lines of the log of older bots, by message
}

// newRollout has three bots of a version at work.
func newRollout(t *testing.T, first, now string) *rollout {
	t.Helper()
	r := &rollout{fleet: newFleet(t, first), now: now, warned: map[string][]string{}}
	r.agent = newElsewhere(r)
	r.starts()
	r.records, r.client = r.fleet.records()
	return r
}

// become replaces the bots by another version, one after the other as an orchestrator
// does. It calls first before each.
func (r *rollout) become(path string, first func()) {
	r.t.Helper()
	for _, u := range r.bots {
		first()
		old, log := u.process()
		u.mu.Lock()
		u.path = path
		u.mu.Unlock()
		u.ends(syscall.SIGTERM)
		if old != r.now {
			for _, m := range warnings.FindAllStringSubmatch(log.String(), -1) {
				r.warned[m[1]] = append(r.warned[m[1]], m[0])
			}
		}
		r.until("the other version", func() bool {
			path, now := u.process()
			return now != log && listens(path, now)
		})
	}
}

// convert ends all bots, converts their store, and starts those of this version.
func (r *rollout) convert(path string) {
	r.t.Helper()
	_, err := r.admin("convert")
	require.ErrorIs(r.t, err, state.ErrInUse)
	older := map[*unit]*output{}
	for _, u := range r.bots {
		u.mu.Lock() // until then it is not started again
		older[u] = u.log
		_ = u.cmd.Process.Signal(syscall.SIGTERM)
		<-u.gone
	}
	statetest.Await(r.t, "the conversion", func() bool {
		_, err = r.admin("convert")
		return !errors.Is(err, state.ErrInUse) // Redis may notice a moment later that a bot has gone
	})
	require.NoError(r.t, err)
	r.records, r.client = r.fleet.records()
	for _, u := range r.bots {
		u.path = path
		u.mu.Unlock()
	}
	r.until("the other version", func() bool {
		return !slices.ContainsFunc(r.bots, func(u *unit) bool {
			path, log := u.process()
			return log == older[u] || !listens(path, log)
		})
	})
}

var warnings = regexp.MustCompile(`level=(?:WARN|ERROR) msg=("[^"]*"|\S+).*`)

// asks has people and the agent ask for something more. Of all that was asked for, people
// decide about one call of each request, so that the first takes all phases.
func (r *rollout) asks() {
	r.t.Helper()
	more := r.fleet.asks(r.records)
	r.all = append(r.all, more)
	r.agent.asks()
	r.until("the card", func() bool { return len(more.cards()) > 0 })
	for _, q := range r.all {
		q.say(1)
	}
}

// decides has people decide about these requests until each has its answer.
func (r *rollout) decides(open []*request) {
	r.t.Helper()
	open = slices.Clone(open)
	r.until("the answers", func() bool {
		for _, q := range open {
			q.decides()
		}
		open = r.answered(open)
		return len(open) == 0
	})
}

// ends checks what must be true when all is done by bots of this version, and returns a
// row of the table.
func (r *rollout) ends(from older, way string) string {
	r.t.Helper()
	r.until("the end of all work", func() bool { return len(dueWork(r.t, r.client)) == 0 })
	sum := r.holds(fault{}, r.all, r.records)
	for n := range r.bots {
		require.Equal(r.t, r.agent.ran, r.agent.told(n), "the agent is told of all that happened")
	}
	left := 0
	for _, lines := range r.warned {
		r.t.Logf("The older version has logged this, and the like %d times: %s", len(lines)-1, lines[0])
		left += len(lines)
	}
	return fmt.Sprintf("%s\t%s\t%d\t%d\t0\t0\t%d\t%d\t%d\t%d\t%d\t",
		from, way, len(r.all), r.agent.ran, sum.doubts, sum.again, sum.copies, r.agent.refused, left)
}

const columns = "from\tway\tin Slack\telsewhere\tlost\tdoubled\tin doubt\trepeated\tposted twice\tHTTP refused\tleft to newer ones\t"

// Replicas are upgraded one by one while people ask and decide: before, in each mixture,
// and after. Then replicas of this version, whose requests wait, go back to the older one
// in the same way, and forth again. An older version that can read these requests ends
// them. One that can't leaves them as they are, and does what is asked for anew. At last all
// replicas are stopped while requests wait, their store is converted, and others start.
func TestAnUpgradeOfOneReplicaAfterTheOtherLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	if !*upgrades {
		t.Skip("make soak runs it: it builds older versions (-upgrades)")
	}
	now, err := binary()
	require.NoError(t, err)
	var table strings.Builder
	rows := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(rows, columns)
	for _, from := range olders {
		t.Run(from.String(), func(t *testing.T) {
			before := builtFrom(t, from.commit)
			t.Run("upgrade", func(t *testing.T) {
				r := newRollout(t, before, now)
				r.become(now, r.asks)
				r.asks()
				r.decides(r.all)
				r.agent.decides()
				_, _ = fmt.Fprintln(rows, r.ends(from, "upgrade"))
			})
			t.Run("back, and forth again", func(t *testing.T) {
				r := newRollout(t, before, now)
				r.become(now, func() {})
				r.become(before, r.asks)
				r.asks()
				if from.goesOn {
					r.decides(r.all)
					r.agent.decides()
				} else {
					r.decides(r.all[len(r.all)-1:])
				}
				require.Equal(t, from.lists, r.agent.told(0) == r.agent.ran)
				r.become(now, func() {})
				r.decides(r.all)
				r.agent.decides()
				_, _ = fmt.Fprintln(rows, r.ends(from, "back, and forth again"))
			})
			t.Run("converted", func(t *testing.T) {
				r := newRollout(t, before, now)
				for range 2 {
					r.asks()
				}
				r.convert(now)
				require.Equal(t, "64/2", r.client.Get(t.Context(), r.records.Prefix()+":{p00}:layout").Val())
				r.asks()
				r.decides(r.all)
				r.agent.decides()
				_, _ = fmt.Fprintln(rows, r.ends(from, "converted"))
			})
		})
	}
	require.NoError(t, rows.Flush())
	t.Log("\n" + table.String())
}
