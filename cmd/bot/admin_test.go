package main

import (
	"bytes"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// admin runs `bot admin` as an operator would, beside the running bot.
func (w *world) admin(args ...string) (string, error) {
	w.t.Helper()
	var out, logged bytes.Buffer
	err := run(w.t.Context(), append([]string{"admin"}, args...), w.env, &out, &logged)
	return out.String(), err
}

// TestAnOperatorEndsARunThatIsInDoubt: the bot is killed while a tool hangs.
// The run is listed, going on with it is refused, it is ended, and the thread
// goes on.
func TestAnOperatorEndsARunThatIsInDoubt(t *testing.T) {
	w := newWorld(t)
	w.hangs("2023-q1-sales.txt")
	first := w.start()
	root := w.sim.ask(cleanUp, "")
	first.out.await(t, `(?s)(call started.*){3}`) // the listing and both readings, one of which hangs
	first.kill()

	w.hangs("")
	second := w.start()
	end := w.sim.await(alice, root, "that a call is in doubt", says("may or may not have happened"))
	require.Contains(t, end.words(), "read_file")
	requireOnce(t, first, second)

	out, err := w.admin("parked")
	require.NoError(t, err)
	id := regexp.MustCompile(`run-\d\d-[0-9a-f-]+`).FindString(out)
	require.NotEmpty(t, id, out)
	require.Contains(t, end.words(), id, "the thread names the run that the operator is to end")
	require.Contains(t, out, "1 parked")
	_, err = w.admin("retry", "runs", id)
	require.ErrorContains(t, err, "not known whether a call happened")

	next := w.sim.ask("what can you do?", root)
	w.sim.await(alice, root, "that it waits", func(m message) bool { return m.TS > next && says("Queued")(m) })
	out, err = w.admin("abandon", id)
	require.NoError(t, err)
	require.Equal(t, "abandoned\n", out)
	w.sim.await(alice, root, "that it was ended", says("An operator ended this run"))
	w.sim.await(alice, root, "the next answer", func(m message) bool { return m.TS > next && says("scripted model")(m) })
	out, err = w.admin("parked")
	require.NoError(t, err)
	require.Equal(t, "0 parked\n", out)
	_, err = w.admin("abandon", id)
	require.ErrorContains(t, err, "has ended")
}

func TestTheOperatorsCommandsSayWhatIsWrong(t *testing.T) {
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
	} {
		_, err := w.admin(c.args...)
		require.ErrorContains(t, err, c.want, "%v", c.args)
	}
}

// An operator who asks a Redis that is not there is told so, and need not wait.
func TestACommandForAnOperatorDoesNotWaitForRedis(t *testing.T) {
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
