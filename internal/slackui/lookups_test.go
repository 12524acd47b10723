package slackui_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/slackui"
)

// crowd is 64 people of one user group, in a workspace that limits us as Slack
// does.
func crowd() (slacksim.Config, []string) {
	sim := slacksim.Config{People: slacksim.DefaultPeople(), Groups: slacksim.DefaultGroups(), TierLimits: true}
	var all []string
	for i := range 64 {
		all = append(all, fmt.Sprintf("U1%04d", i))
		sim.People = append(sim.People, slacksim.Person{ID: all[i], Name: fmt.Sprintf("p%d", i)})
	}
	sim.Groups = append(sim.Groups, slacksim.Group{ID: "S0ALL", Handle: "all", Users: all})
	return sim, all
}

// asked counts the calls of a method since then by the id that they ask for.
func (o *workspace) asked(method, name string, since int) map[string]int {
	o.t.Helper()
	counts := map[string]int{}
	for _, c := range o.Calls(method)[since:] {
		form, err := url.ParseQuery(c.Request)
		require.NoError(o.t, err)
		counts[form.Get(name)]++
	}
	return counts
}

// When a membership has become too old, whoever clicks makes us ask Slack again:
// once for each id in a replica, however many click at the same moment, and once in all
// replicas together if they do not ask at the same moment. How long a replica waits for
// another one that is asking, package directory tests on virtual time.
func TestManyClicksAtOnceAskSlackOnce(t *testing.T) {
	for name, replicas := range map[string]int{"one replica": 1, "two replicas": 2} {
		t.Run(name, func(t *testing.T) {
			sim, people := crowd()
			var cfg slackui.Config
			o := newWorkspace(t, sim, inLists, func(c *slackui.Config) { cfg = *c })
			offices := []*workspace{o}
			for range replicas - 1 {
				ui, err := slackui.New(cfg)
				require.NoError(t, err)
				other := *o
				other.ui = ui
				offices = append(offices, &other)
				t.Cleanup(func() { require.NoError(t, ui.Server.Shutdown(context.Background())) })
			}
			everybody := by("all", fromGroup("S0ALL"))
			var batches []approvals.Batch
			for i := range people {
				batches = append(batches, o.another(fmt.Sprint("n", i), 0, call("c1", "x", `{}`, everybody), call("c2", "x", `{}`, everybody), call("c3", "x", `{}`, everybody)))
			}
			var before []int
			later := func() { // what is known is too old
				o.now.Advance(61 * time.Second)
				before = []int{len(o.Calls("users.info")), len(o.Calls("usergroups.users.list"))}
			}
			require.Equal(t, 200, o.deliver(pressed(people[0], "1.1.a", "approve.0", button(batches[0], 0))))
			require.Equal(t, approvals.Approved, o.status(batches[0], 0))

			counts := func(i, call int, user string) { // on a busy machine a click may take longer than Slack waits, and is repeated
				t.Helper()
				if o.status(batches[i], call) == approvals.Pending {
					offices[i%replicas].deliver(pressed(user, fmt.Sprintf("2.%d.%d", call, i), "approve.0", button(batches[i], call)))
				}
				require.Equal(t, approvals.Approved, o.status(batches[i], call), "click %d of round %d", i, call)
			}

			for round, who := range [][]string{people, slices.Repeat(people[:1], len(people))} {
				later()
				var all sync.WaitGroup
				for i, user := range who {
					all.Go(func() {
						offices[i%replicas].deliver(pressed(user, fmt.Sprintf("1.%d.%d", round, i), "approve.0", button(batches[i], round)))
					})
				}
				all.Wait()
				for i, user := range who {
					counts(i, round, user)
				}
				for user, n := range o.asked("users.info", "user", before[0]) {
					require.LessOrEqual(t, n, replicas, user)
				}
				groups := o.asked("usergroups.users.list", "usergroup", before[1])
				require.Len(t, groups, 1)
				require.Contains(t, groups, "S0ALL")
				require.LessOrEqual(t, groups["S0ALL"], replicas)
			}

			later()
			for i, office := range offices {
				office.deliver(pressed(people[0], fmt.Sprintf("1.2.%d", i), "approve.0", button(batches[i], 2)))
				counts(i, 2, people[0])
			}
			require.Equal(t, map[string]int{people[0]: 1}, o.asked("users.info", "user", before[0]))
			require.Equal(t, map[string]int{"S0ALL": 1}, o.asked("usergroups.users.list", "usergroup", before[1]))
		})
	}
}

// A membership that is needed while it is about to become too old is renewed
// after the answer, so that nobody waits for Slack as long as people click.
func TestAMembershipInUseIsRenewedBeforeItsEnd(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{Events: []string{"app_mention"}}, inLists) // no event says that a group has changed
	b := o.another("one", 0, many(4, `{}`)...)
	clicks := 0
	click := func(user string) {
		t.Helper()
		require.Equal(t, 200, o.deliver(pressed(user, fmt.Sprint("1.", clicks), "approve.0", button(b, clicks))))
		clicks++
		require.NoError(t, o.ui.Server.Shutdown(t.Context())) // it waits for renewals too
	}
	asked := func() []int { return []int{len(o.Calls("users.info")), len(o.Calls("usergroups.users.list"))} }
	click("U0BOB")
	require.Equal(t, []int{1, 1}, asked())
	o.now.Advance(40 * time.Second)
	click("U0BOB")
	require.Equal(t, []int{1, 1}, asked(), "it is young")
	o.now.Advance(10 * time.Second)
	require.NoError(t, o.SetGroup("S0SRE", []string{"U0CAROL"}))
	click("U0BOB")
	require.Equal(t, approvals.Approved, o.status(b, 2), "what was known still counts")
	require.Equal(t, []int{2, 2}, asked(), "both are renewed")
	o.now.Advance(15 * time.Second)
	click("U0BOB")
	require.Equal(t, approvals.Pending, o.status(b, 3), "the new answer is that he has left")
	require.Equal(t, []int{3, 2}, asked(), "whether Carol, whom the refusal means, can take part")
}

// While Slack limits a question it is not asked: people are refused, and told
// that it is not known whether they may sign.
func TestALimitedQuestionIsNotAskedUntilItMayBe(t *testing.T) {
	o := newWorkspace(t, slacksim.Config{}, inLists)
	b := o.another("one", 0, many(4, `{}`)...)
	o.SetFaults(slacksim.Faults{Next: []slacksim.Fault{{Method: "usergroups.users.list", Status: 429, RetryAfter: 30}}})
	for i := range 3 {
		require.Equal(t, 200, o.deliver(pressed("U0BOB", fmt.Sprint("1.", i), "approve.0", button(b, i))))
		require.Equal(t, approvals.Pending, o.status(b, i))
	}
	require.Len(t, o.Calls("usergroups.users.list"), 1)
	o.now.Advance(30 * time.Second)
	require.Equal(t, 200, o.deliver(pressed("U0BOB", "2.1", "approve.0", button(b, 0))))
	require.Equal(t, approvals.Approved, o.status(b, 0))
}
