package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"
)

// admin runs `bot admin` as an operator would, beside the running bot.
func (w *world) admin(args ...string) (string, error) {
	w.t.Helper()
	var out, logged bytes.Buffer
	err := run(w.t.Context(), append([]string{"admin"}, args...), w.env, &out, &logged)
	return out.String(), err
}

// The bot is killed while a tool hangs. Its tool only reads, so the next process
// calls it again: no operator is needed, and the thread goes on.
func TestARunWhoseProcessDiedInAToolGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hangs("2023-q1-sales.txt")
	first := w.start()
	root := w.sim.ask(cleanUp, "")
	first.out.await(t, `(?s)(call started.*){3}`) // the listing and both readings, one of which hangs
	first.kill()

	w.hangs("")
	second := w.start()
	w.sim.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))
	second.out.await(t, `call started.*tool=read_file`)
	require.NotContains(t, second.out.String(), "call in doubt")
	requireOnce(t, first, second)
	out, err := w.admin("parked")
	require.NoError(t, err)
	require.Equal(t, "0 parked\n", out)
	_, err = w.admin("abandon", regexp.MustCompile(`run-\d\d-[0-9a-f-]+`).FindString(first.out.String()))
	require.ErrorContains(t, err, "its calls wait for people")
}

func TestTheOperatorsCommandsSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, c := range []struct {
		want string
		args []string
	}{
		{`there is no command "unpark"`, []string{"unpark"}},
		{"not found", []string{"retry", "cards", "batch-01-x"}},
		{"not found", []string{"abandon", "run-01-x"}},
		{"not found", []string{"abandon", "nonsense"}},
		{"not found", []string{"fulfill", "batch-01-x", "c", `"words"`}},
		{`run "run-01-x": not found: compare the id; bot admin list shows those`, []string{"abandon", "run-01-x"}},
		{`run "run-01-x": not found: compare the id; bot admin list shows those`, []string{"run", "run-01-x"}},
		{`run "gone": not found: the id of a run, or of a request of a remote agent, looks like run-01-`, []string{"deliveries", "gone"}},
		{"bot admin list shows it", []string{"redeliver", "nonsense"}},
		{"bot admin parked lists what is", []string{"retry", "runs", "run-01-x"}},
		{"bot admin run shows the batches", []string{"fulfill", "batch-01-x", "c", `"words"`}},
		{`there was no message for a webhook "ci" of the agent "claude"; with --config FILE`, []string{"enable", "claude", "ci"}},
		{"--most must be 1 or more", []string{"list", "--most", "0"}}, // no list of nothing while requests wait
	} {
		_, err := w.admin(c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)
	}
}

// "0 parked" is no answer about a bot with another prefix.
func TestACommandForAnOperatorSaysThatNoBotHasThePrefix(t *testing.T) {
	t.Parallel()
	env := []string{"REDIS_URL=redis://" + miniredis.RunT(t).Addr()}
	parked := func(args ...string) (string, string) {
		var out, stderr bytes.Buffer
		require.NoError(t, run(t.Context(), append([]string{"admin", "parked"}, args...), env, &out, &stderr))
		return out.String(), stderr.String()
	}
	out, stderr := parked()
	require.Equal(t, "0 parked\n", out)
	require.Contains(t, stderr, `no bot has started on this Redis with the prefix "countersign"`)
	require.Contains(t, stderr, "--config")
	_, stderr = parked("--config", write(t, "redis: {prefix: ours}\npolicy: p.yaml\nagents: [{name: ops}]\n"))
	require.Contains(t, stderr, `with the prefix "ours"`)

	w := newWorld(t)
	w.start()
	env = w.env
	_, stderr = parked()
	require.NotContains(t, stderr, "no bot has started")
}

// An operator who asks a Redis that is not there is told so, and need not wait.
func TestACommandForAnOperatorDoesNotWaitForRedis(t *testing.T) {
	t.Parallel()
	config := write(t, "redis: {durability: fsync}\npolicy: p.yaml\nagents: [{name: ops}]\n")
	for name, args := range map[string][]string{
		"admin":                      {"admin", "parked"},
		"admin with a configuration": {"admin", "parked", "--config", config},
		"policy calls":               {"policy", "calls"},
	} {
		t.Run(name, func(t *testing.T) {
			var out, stderr bytes.Buffer
			err := run(t.Context(), args, []string{"REDIS_URL=redis://bot:hunter22@127.0.0.1:1"}, &out, &stderr)
			require.Equal(t, exitFailure, exitCode(err, &stderr))
			require.Contains(t, stderr.String(), "bot: redis at redis://127.0.0.1:1 does not answer: ")
			require.NotContains(t, stderr.String(), "trying again")
			require.NotContains(t, stderr.String(), "hunter22")
			require.Empty(t, out.String())
		})
	}
}
