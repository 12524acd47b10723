package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// factLines is what a program reads of the facts.
func factLines(f *follower, args ...string) (all []moment) {
	f.t.Helper()
	for line := range strings.Lines(f.admin(append([]string{"facts", "--json"}, args...)...)) {
		var m moment
		require.NoError(f.t, json.Unmarshal([]byte(line), &m))
		all = append(all, m)
	}
	return all
}

// An auditor who knows no id reads who asked for what and who decided it, of all requests,
// the oldest first.
func TestAnAuditorReadsWhoSignedWhat(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	from := time.Now()
	client := intake.Client{Name: "refunds", Owner: dave, Channel: ops, Credential: "c", OpenLimit: 10, PerMinute: 100}
	r, err := f.b.intake.Ask(t.Context(), client, intake.Ask{
		Door: "api", ExternalID: "x", Calls: []intake.Call{{ID: "c1", Tool: "refund", Args: json.RawMessage(`{"of": "a.txt"}`)}},
	})
	require.NoError(t, err)
	_, err = f.b.intake.Withdraw(t.Context(), client, r.ID, "")
	require.NoError(t, err)
	f.approves()
	f.sees("what became of the call", func() bool { return len(factLines(f)) == 8 })

	facts := factLines(f)
	var said []string
	for i, m := range facts {
		said = append(said, m.Agent+" "+m.Tool+" "+string(m.Kind)+" "+string(m.Verdict)+m.Status+m.State)
		require.NotEmpty(t, m.Run)
		require.False(t, i > 0 && m.At.Before(facts[i-1].At), "they are in order")
	}
	require.Equal(t, []string{
		"ops delete_file opened ", "refunds refund opened ", "refunds refund settled withdrawn", "refunds  resolved ",
		"ops delete_file decided approve", "ops delete_file settled approved", "ops  resolved ", "ops delete_file concluded failed",
	}, said)
	require.Equal(t, facts[0].Digest, facts[4].Digest)
	for _, at := range []int{0, 1, 2, 5} { // asked, and settled
		require.Regexp(t, `^default@[0-9a-f]+$`, facts[at].Rule)
	}

	require.Equal(t, facts[1:4], factLines(f, "--agent", "refunds"))
	require.Equal(t, facts[4:5], factLines(f, "--by", "U0BOB"))
	require.Equal(t, facts[:1], factLines(f, "--until", from.Truncate(time.Second).Add(time.Second).UTC().Format(time.RFC3339), "--agent", "ops")[:1])
	require.Empty(t, factLines(f, "--since", from.AddDate(0, 0, 2).Format(time.DateOnly)))

	text := f.admin("facts")
	require.Contains(t, text, "\tU0BOB decided: approve (delete_file of agent ops)\t")
	require.Contains(t, text, "\tthe call is approved (delete_file of agent ops); the rule "+facts[0].Rule+" asked\t")
	require.Contains(t, text, "\tagent refunds for U0DAVE: people are asked about refund\t"+string(r.ID)+" ")
	require.True(t, strings.HasSuffix(text, "\n8 facts\n"), text)
	requireNothingForeign(t, text)
	for words, why := range map[string]string{
		"--since yesterday": "2026-01-31", "--by bob": "U0123456789", "--by @U0BOB": "U0123456789", "--by=": "U0123456789", "--agent=": "the name of an agent",
		"--since 2026-02-01 --until 2026-02-01": "--until must be after --since",
	} {
		args := append([]string{"admin", "facts"}, strings.Fields(words)...)
		require.ErrorContains(t, run(t.Context(), args, f.o.Environ, &strings.Builder{}, &strings.Builder{}), why, words)
	}
	require.Equal(t, facts[2:3], factLines(f, "--by", "service:refunds"))

	page, err := os.ReadFile("../../docs/operate.md")
	require.NoError(t, err)
	block := regexp.MustCompile("(?s)```python\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, block)
	fact, err := json.Marshal(facts[1])
	require.NoError(t, err)
	compare := string(block[1]) + "\nimport json, sys\nprint(digest(json.loads(sys.argv[1]), sys.argv[2].encode()), end='')"
	got, err := exec.CommandContext(t.Context(), "python3", "-c", compare, string(fact), `{"of": "a.txt"}`).Output()
	require.NoError(t, err)
	require.Equal(t, facts[1].Digest.String(), string(got), "what the documentation computes")
}

// An archive that is written month by month has each fact once: also one that is stored after
// the month in which it happened was written.
func TestMonthsOfFactsHaveEachFactOnce(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	stores := func(stored string, e approvals.Event) {
		t.Helper()
		at, err := time.Parse(time.RFC3339, stored)
		require.NoError(t, err)
		doc, err := approvals.EncodeEvent(e)
		require.NoError(t, err)
		_, err = f.redis.XAdd(f.b.store.Prefix()+":{p07}:facts", fmt.Sprintf("%d-0", at.UnixMilli()), []string{"e", string(doc)})
		require.NoError(t, err)
	}
	january := time.Date(2026, 1, 31, 23, 59, 59, 0, time.UTC)
	stores("2026-01-31T23:59:59Z", approvals.Concluded{Batch: "b1", Call: "c1", State: approvals.Ran, At: january})
	month := func(since, until string) (calls []approvals.ToolCallID) {
		t.Helper()
		for _, m := range factLines(f, "--since", since, "--until", until) {
			calls = append(calls, m.Call)
		}
		return calls
	}
	require.Equal(t, []approvals.ToolCallID{"c1"}, month("2026-01-01", "2026-02-01"))
	stores("2026-02-01T00:00:00Z", approvals.Concluded{Batch: "b1", Call: "c2", State: approvals.Refused, At: january})
	stores("2026-02-02T00:00:00Z", approvals.Concluded{Batch: "b1", Call: "c3", State: approvals.Ran}) // of a version that stored no time
	require.Equal(t, []approvals.ToolCallID{"c1"}, month("2026-01-01", "2026-02-01"))
	require.Equal(t, []approvals.ToolCallID{"c2", "c3"}, month("2026-02-01", "2026-03-01"))
	late := factLines(f, "--until", "2026-03-01")[1]
	require.Equal(t, january, late.At)
	require.Equal(t, january.Add(time.Second), late.Stored)
}

// Of the people who share a credential, one asked, and no one knows which.
func TestTheFactsNameThoseWhoShareACredential(t *testing.T) {
	t.Parallel()
	opened := approvals.Opened{
		Batch: "b1", Agent: "ci", Requester: approvals.ServiceUser("ci"), Participants: []approvals.UserID{"U0ANN", "U0BOB"},
		Approvals: []approvals.CallRef{{ID: "c1", Name: "deploy"}},
	}
	told := func() (all []moment) {
		factOf(opened, func(m moment) { all = append(all, m) })
		require.Len(t, all, 1)
		return all
	}
	shared := told()[0]
	require.Equal(t, opened.Participants, shared.Participants)
	require.Equal(t, " for U0ANN or U0BOB", shared.asker())
	require.True(t, wantedFacts{by: "U0BOB"}.has(shared))

	opened.Requester = "U0ANN" // and Bob wrote in the thread
	require.Equal(t, " for U0ANN", told()[0].asker())
	require.False(t, wantedFacts{by: "U0BOB"}.has(told()[0]))
}

// What people approved may be stopped by another rule than the one that asked.
func TestTheFactOfACallThatThePolicyStoppedNamesTheRule(t *testing.T) {
	t.Parallel()
	var said []moment
	factOf(approvals.Concluded{Batch: "b1", Call: "c1", State: approvals.Refused, Rule: "freeze@0a1b2c3d"}, func(m moment) { said = append(said, m) })
	require.Len(t, said, 1)
	require.Equal(t, "what became of the call: refused by the rule freeze@0a1b2c3d", said[0].What)
	require.Equal(t, "freeze@0a1b2c3d", said[0].Rule)
}

// Of those who may decide for someone who is away, both are found.
func TestTheFactsOfAPersonHaveWhatADelegateDecided(t *testing.T) {
	t.Parallel()
	m := moment{Kind: factDecided, By: "U0DAVE", DelegateOf: []approvals.UserID{"U0BOB"}}
	for by, found := range map[approvals.UserID]bool{"U0BOB": true, "U0DAVE": true, "U0CAROL": false} {
		require.Equal(t, found, wantedFacts{by: by}.has(m), by)
	}
}

// Someone reads what Bob signed: his approval is there, and so is the edit after which it
// did not count.
func TestTheFactOfAnEditNamesWhoseDecisionsItCleared(t *testing.T) {
	t.Parallel()
	edited := approvals.Amended{Batch: "b1", Call: "c1", By: approvals.Principal{User: "U0CAROL"}, Cleared: []approvals.UserID{"U0BOB", "U0ERIN"}}
	var said []moment
	factOf(edited, func(m moment) { said = append(said, m) })
	require.Len(t, said, 1)
	require.Equal(t, "U0CAROL changed the arguments, which cleared the decisions of U0BOB and U0ERIN", said[0].What)
	for by, found := range map[approvals.UserID]bool{"U0BOB": true, "U0ERIN": true, "U0CAROL": true, "U0DAVE": false} {
		require.Equal(t, found, wantedFacts{by: by}.has(said[0]), by)
	}
	doc, err := json.Marshal(said[0])
	require.NoError(t, err)
	require.Contains(t, string(doc), `"cleared":["U0BOB","U0ERIN"]`)
}
