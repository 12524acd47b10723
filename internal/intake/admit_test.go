package intake_test

import (
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
	"github.com/countersign/countersign/internal/state/statetest"
)

// claimed is the question of a coding agent that claims the call if it needs nobody.
func claimed(n int) intake.Ask {
	a := permitted(n)
	a.Claim = true
	return a
}

// again is the same question of another turn of the agent.
func (w *world) again(a intake.Ask) intake.Request {
	a.ExternalID = "toolu_" + rand.Text()
	return w.ask(a)
}

// Counting is exact, so a command more is seen here.
func TestAPermittedCallIsAskedAboutAndClaimedInOneRoundTrip(t *testing.T) {
	i := statetest.NewInstance(t)
	w := newWorldOn(t, i.Client, rand.Text())
	seen := w.counted()
	w.ask(claimed(0)) // now the server knows the script, and this process the document of the agent
	seen.Taken()
	require.NoError(t, i.Client.ConfigResetStat(t.Context()).Err())
	require.True(t, w.ask(claimed(1)).Claimed)
	ran := 0
	for name, of := range i.Client.InfoMap(t.Context(), "commandstats").Val()["Commandstats"] {
		var n int
		_, err := fmt.Sscanf(of, "calls=%d", &n)
		require.NoError(t, err)
		if !strings.Contains(name, "config") && !strings.Contains(name, "info") {
			ran += n
		}
	}
	require.Equal(t, [][]string{{"evalsha"}}, seen.Taken())
	require.LessOrEqual(t, ran, 19, "commands of the server, in the script too")
}

func TestAClaimedPermissionIsNotFoundByTheSameCall(t *testing.T) {
	w := newWorld(t)
	w.ask(claimed(0))
	seen := w.counted()
	first := w.ask(claimed(1))
	seen.Taken()
	second := w.again(claimed(1))
	require.Equal(t, [][]string{{"evalsha"}}, seen.Taken(), "this process knows which request is the next")
	elsewhere := *w
	elsewhere.open(w.client)
	third := elsewhere.again(claimed(1))
	fourth := w.again(claimed(1))
	ids := map[approvals.RunID]bool{}
	for _, r := range []intake.Request{first, second, third, fourth} {
		require.True(t, r.Claimed)
		require.Equal(t, first.Calls[0].Fingerprint, r.Calls[0].Fingerprint)
		ids[r.ID] = true
		_, err := w.Claim(t.Context(), claude, r.ID, "c0")
		require.ErrorIs(t, err, intake.ErrClaimed)
	}
	require.Len(t, ids, 4)
}

func TestAnotherProcessReadsTheDocumentOfTheAgentAndTriesAgain(t *testing.T) {
	w := newWorld(t)
	w.ask(claimed(0))
	elsewhere := *w
	seen := elsewhere.counted()
	elsewhere.ask(claimed(1))
	w.ask(claimed(2))
	seen.Taken()
	require.True(t, elsewhere.ask(claimed(3)).Claimed)
	require.Equal(t, [][]string{{"evalsha"}, {"hgetall"}, {"evalsha"}}, seen.Taken())
}

func TestACallThatIsClaimedWithItsQuestionStandsLikeOneThatIsClaimedAfterIt(t *testing.T) {
	one, other := newWorld(t), newWorld(t)
	r := one.ask(claimed(1))
	require.True(t, r.Claimed)
	q := other.ask(permitted(1))
	require.False(t, q.Claimed)
	require.Equal(t, q.ID, r.ID)
	_, err := other.Claim(t.Context(), claude, q.ID, "c0")
	require.NoError(t, err)
	require.Equal(t, other.get(q.ID), one.get(r.ID))
	for _, w := range []*world{one, other} {
		all, err := w.List(t.Context(), claude, intake.Filter{Group: q.Group, ExternalID: q.ExternalID})
		require.NoError(t, err)
		require.Equal(t, []intake.Request{withoutReceipts(w.get(q.ID))}, all)
		_, err = w.Report(t.Context(), claude, q.ID, "c0", intake.Report{State: approvals.Ran})
		require.NoError(t, err)
	}
	require.Equal(t, other.get(q.ID), one.get(r.ID))
}

func withoutReceipts(r intake.Request) intake.Request {
	for i := range r.Calls {
		r.Calls[i].Receipt = ""
	}
	return r
}

func TestWhatIsNotPermittedIsAskedAboutAsBeforeAndThePolicyOnlyOnce(t *testing.T) {
	w := newWorld(t)
	for tool, outcome := range map[string]intake.Outcome{"write": intake.OutcomePending, "never": intake.OutcomeRefused} {
		a := claimed(1)
		a.ExternalID, a.Calls[0].Tool = tool, tool
		before := w.policy.count()
		r := w.ask(a)
		require.False(t, r.Claimed)
		require.Equal(t, outcome, r.Calls[0].Outcome)
		require.Equal(t, before+1, w.policy.count())
		if outcome == intake.OutcomePending {
			require.Equal(t, r.ID, w.again(a).ID, "the same call waits with it")
			w.approve(r, "c0")
			w.policy.set(tool, approvals.Permit{})
			found := w.again(a)
			require.Equal(t, r.ID, found.ID, "an approval that is not used is used first")
			require.False(t, found.Claimed)
		}
	}
}

func TestCallsThatArePermittedAtTheSameTimeAreStoredTogether(t *testing.T) {
	w := newWorld(t)
	w.ask(claimed(-1))
	seen := w.counted()
	const calls = 64
	for n, err := range w.atOnce(claude, calls, claimed) {
		require.NoError(t, err, n)
	}
	require.LessOrEqual(t, len(seen.Taken()), calls+1)
	all, err := w.List(t.Context(), claude, intake.Filter{Limit: intake.MaxDone})
	require.NoError(t, err)
	require.Len(t, all, calls+1)
	for _, r := range all {
		require.False(t, r.Calls[0].ClaimedAt.IsZero())
	}
}

func TestTheSameCallAtTheSameTimeIsPermittedOnceForEachThatAsks(t *testing.T) {
	w := newWorld(t)
	elsewhere := *w
	elsewhere.open(w.client)
	var mu sync.Mutex
	var wg sync.WaitGroup
	used := map[approvals.RunID]int{}
	for n := range 24 {
		at := []*world{w, &elsewhere}[n%2]
		wg.Go(func() {
			a := claimed(1)
			a.ExternalID = fmt.Sprint(n)
			r, err := at.Ask(t.Context(), claude, a)
			if err == nil && !r.Claimed {
				_, err = at.Claim(t.Context(), claude, r.ID, r.Calls[0].ID)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				used[r.ID]++
			}
		})
	}
	wg.Wait()
	require.NotEmpty(t, used)
	for id, n := range used {
		require.Equal(t, 1, n, id)
	}
}

func TestLimitsAreExactForPermittedCallsInSeveralProcesses(t *testing.T) {
	w := newWorld(t)
	elsewhere := *w
	elsewhere.open(w.client)
	c := claude
	c.PerMinute = 21
	var mu sync.Mutex
	var wg sync.WaitGroup
	permits := 0
	for n := range 60 {
		at := []*world{w, &elsewhere}[n%2]
		wg.Go(func() {
			_, err := at.Ask(t.Context(), c, claimed(n))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				permits++
				return
			}
			var limit *intake.LimitError
			require.ErrorAs(t, err, &limit)
		})
	}
	wg.Wait()
	require.Equal(t, 21, permits)
}

func TestCallsOfADayAreCountedIfTheyAreClaimedWithTheirQuestion(t *testing.T) {
	w := newWorld(t)
	w.policy.day = 5
	outcomes := map[intake.Outcome]int{}
	for n := range 8 {
		a := claimed(n)
		a.Calls[0].Tool = "counted"
		outcomes[w.ask(a).Calls[0].Outcome]++
	}
	require.Equal(t, map[intake.Outcome]int{intake.OutcomeAllowed: 5, intake.OutcomeRefused: 3}, outcomes)
}

func TestAQuestionThatClaimsAndWasCutOffAnywhereIsAskedAgain(t *testing.T) {
	for _, after := range []bool{false, true} {
		w := newWorld(t)
		s, k := w.dying(1, after)
		_, err := s.Ask(t.Context(), claude, claimed(1))
		require.ErrorIs(t, err, errKilled)
		require.True(t, k.dead)
		r := w.ask(claimed(1))
		require.Equal(t, intake.OutcomeAllowed, r.Calls[0].Outcome)
		if !r.Claimed { // its external id names the one that nobody has heard of
			_, err := w.Claim(t.Context(), claude, r.ID, r.Calls[0].ID)
			require.NoError(t, err)
		}
	}
}

// Nothing is left to be done after a permitted call, and its thread is removed in time.
func TestAPermittedCallLeavesNoWork(t *testing.T) {
	w := newWorld(t)
	w.ask(claimed(1))
	keys, err := w.client.Keys(t.Context(), "*"+w.prefix+"*:due").Result()
	require.NoError(t, err)
	require.Len(t, keys, 1)
	due, err := w.client.ZRange(t.Context(), keys[0], 0, -1).Result()
	require.NoError(t, err)
	require.Len(t, due, 1)
	require.Contains(t, due[0], "=idle-", "the threads of its partition are looked at in time")
}
