package internal_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runMutants has the tests run on the mutants, as make soak does.
var runMutants = flag.Bool("mutants", false, "take every guard away, not only three, and run the tests that must notice")

// A mutant is the program without one guard. A test of the package must fail then.
type mutant struct {
	guard    string
	file     string // below internal
	old, new string
	in       string // a package below internal
	test     string // of that package, a pattern
}

var mutants = []mutant{
	{
		"only a call that changes nothing runs without a journal", "agentrun/perform.go",
		"if p.tool == nil || agent.effect(p.tool.Spec()) != EffectPure {", "if p.tool == nil {", "gateway", "TestACallThatMayNotRunAnyMoreIsAskedAboutAnew",
	},
	{
		"only a call that changes nothing runs before it is in the journal", "agentrun/execute.go",
		"return p.entry == nil && p.precondition == nil && x.session.journal[p.call.ID].State == \"\" &&", "return p.entry == nil ||", "agentrun",
		"TestTheJournalOfACallThatChangesNothing",
	},
	{
		"the policy is asked before a call runs without a journal", "agentrun/perform.go",
		"(&rulings{session: s, tally: r.tally()}).consider(ctx, run, p)", "p.execute = true", "gateway", "TestACallThatMayNotRunAnyMoreIsAskedAboutAnew",
	},
	{
		"a decision is about the arguments that were shown", "approvals/decide.go",
		"if d.Digest.IsZero() || d.Digest != a.Call.Digest {", "if false {", "approvals", "TestDecideTellsTheFirstThingThatIsWrong/stale",
	},
	{
		"a person decides once", "approvals/decide.go",
		"if j := a.decisionOf(d.By.User); j >= 0 {", "if j := a.decisionOf(d.By.User); false {", "approvals", "TestDecideTellsTheFirstThingThatIsWrong",
	},
	{
		"a quorum is counted", "approvals/alternatives.go",
		"missing, _ := p.newMatching(way).missing(); missing == 0 {", "missing, _ := p.newMatching(way).missing(); missing >= 0 {", "approvals", "TestTranscripts",
	},
	{
		"requesters don't approve their own requests", "approvals/eligibility.go",
		`case r.Separation && (u == b.Requester || b.Requester == ""):`, "case false:", "approvals", "TestTranscripts",
	},
	{
		"editors don't approve their own edits", "approvals/eligibility.go",
		"case !r.EditorMaySign && slices.Contains(a.Editors(), u):", "case false:", "approvals", "TestAmend|OwnEdit|Editor",
	},
	{
		"a decided call stays decided", "approvals/decide.go",
		"return i, b.Approvals[i], b.Approvals[i].open(at)", "return i, b.Approvals[i], nil", "approvals", "TestDecideTellsTheFirstThingThatIsWrong",
	},
	{
		"versions are compared", "state/commit.lua",
		"if (is[1] or '') ~= ARGV[3] then return unless_applied({0, 1}) end", "", "state", "TestOnMiniredis/memos",
	},
	{
		"conditions are checked", "state/commit.lua",
		"if tostring(words(last - 1) or '') ~= ARGV[last] then return unless_applied({0, first + n}) end", "words(last - 1)", "state", "TestOnMiniredis/races",
	},
	{
		"a request is applied once", "state/commit.lua",
		"if applied then return {applied == attempt and 1 or 2} end", "", "state", "TestOnMiniredis/lost_replies",
	},
	{
		"a commit that must be the first is told that it is not", "state/commit.go",
		"case c.first && len(reply) == 1 && reply[0] == 2:", "case false:", "state", "TestOnMiniredis/requests|TestOnMiniredis/decided",
	},
	{
		"a claim is lost with its fence", "agentrun/claim.go",
		"if run.Owner != c.fence || run.Status != RunRunning {", "if false {", "agentrun", "Zombie",
	},
	{
		"a lease that is not over is respected", "agentrun/work.go",
		"if now.store.Before(at) && run.Status == RunRunning {", "if now.store.Before(at) && false {", "agentrun", "TestAZombie|TestACallInDoubt|Skew",
	},
	{
		"a call begins with most of the lease ahead", "agentrun/claim.go",
		"stale := c.now().Sub(c.renewed) > c.lease/2", "stale := false", "agentrun", "TestNoBeginningLateInTheLease",
	},
	{
		"a call whose beginning was stored late does not begin after the lease", "agentrun/execute.go",
		"if err := x.session.claim.fresh(ctx); err != nil {\n\t\tif p.begun {", "if err := error(nil); err != nil {\n\t\tif p.begun {", "agentrun", "TestAZombieBeforeATool",
	},
	{
		"the end of a call is stored while the lease lasts", "agentrun/record.go",
		"&& claim.lasts()", "&& false", "agentrun", "TestWhatACallDidIsStoredWhenTheStoreIsBack",
	},
	{
		"a worker gives up with its lease", "agentrun/record.go",
		"&& claim.lasts()", "&& true", "agentrun", "TestAStoreThatIsAwayPastTheLease",
	},
	{
		"a call that was begun is in doubt", "agentrun/journal.go",
		"return e, e.State == EntryStarted || ", "return e, ", "agentrun", "TestACallInDoubtDoesNotStopItsSiblings",
	},
	{
		"the calls that run are those that were shown", "agentrun/answers.go",
		"case digest != approvals.DigestOf(b.ID, c):", "case digest != approvals.DigestOf(b.ID, c) && false:", "agentrun", "TestMatch|TestWhatWasTamperedWithIsRefused",
	},
	{
		"the policy is asked again before an approved call runs", "agentrun/answers.go",
		"if err := consider(); err != nil {", "if err := error(nil); err != nil {", "agentrun", "TestAnApprovedCallIsLookedAtAgain",
	},
	{
		"one process at a time draws a record", "slackui/memo/claim.go",
		`n.Owner != "" && left > 0 {`, `n.Owner != "" && false {`, "slackui/memo", "TestAClaimIsLookedAtAgainSoon|TestADrawerThatWasTooSlowSavesNothing",
	},
	{
		"nothing is sent to Slack without a claim", "slackui/memo/claim.go",
		"	if h.old() {\n		if err :=", "	if false {\n		if err :=", "slackui/memo", "TestNothingIsSentWithoutAClaim",
	},
	{
		"what a lost claim covered is drawn again", "slackui/memo/claim.go",
		"if h.lost && h.called && ", "if h.lost && false && ", "slackui", "ThatAStalledProcess",
	},
	{
		"an answer on the web is about the arguments that were shown", "uistream/answers.go",
		"func (q asked) stale() bool { return !begins(q.approval.Call.Digest, q.shown) }", "func (q asked) stale() bool { return false }",
		"uistream", "TestArgumentsThatWereChangedMeanwhileAreAskedAboutAnew",
	},
	{
		"nothing is acknowledged that too few replicas have", "state/durability.go",
		"if have < int64(b.replicas) {", "if false {", "state", "TestWithoutItsReplicaNothingIsAcknowledged|TestEveryAcknowledgmentAsksForItsLevel",
	},
	{
		"nothing is acknowledged that is not synced", "state/durability.go",
		"if len(synced) != 2 || synced[0] < 1 {", "if len(synced) != 2 {", "state", "TestEveryAcknowledgmentAsksForItsLevel|TestARepeatedCommit",
	},
	{
		"a decision about a remote call is used once", "intake/claim.go",
		"case !st.ClaimedAt.IsZero():", "case false:", "intake", "Claim",
	},
	{
		"a decision about a remote call is used in its time", "intake/claim.go",
		"case !st.UsableUntil.IsZero() && !now.Before(st.UsableUntil):", "case false:", "intake", "TestADecisionWaitsAsLongAsThePolicySays",
	},
	{
		"tokens end", "bearer/jwt.go",
		"if c.ValidateWithLeeway(jwt.Expected{Time: now}, leeway) != nil {", "if false {", "bearer", "TestAJSONWebToken",
	},
	{
		"what a card cuts is not approved by one click", "slackui/card/message.go",
		"c.Waits() && !drawn.cut,", "c.Waits(),", "slackui", "TestACardApprovesNothingThatItCuts",
	},
	{
		"that a card shows all is noted of one version", "slackui/delivery/placements.go",
		"return x.Whole && x.Version == b.Version && ", "return x.Whole && ", "slackui", "TestOnlyACardThatShowsTheRequestAsItIs",
	},
	{
		"requests of Slack are signed", "slackui/inbound/signature.go",
		"if !hmac.Equal(want, []byte(given)) {", "if !hmac.Equal(want, []byte(given)) && false {", "slackui/inbound", "TestSignatures",
	},
}

// alwaysRun are the guards whose tests take the least time: they are taken away in each
// run, which shows that a mutant is noticed at all.
var alwaysRun = []string{"one process at a time draws a record", "nothing is sent to Slack without a claim", "tokens end"}

// Each mutant is of the code as it is. It is compiled, and the tests turn red on it: all
// with -mutants, and otherwise those of alwaysRun.
func TestEveryGuardIsTested(t *testing.T) {
	for _, guard := range alwaysRun {
		require.True(t, slices.ContainsFunc(mutants, func(m mutant) bool { return m.guard == guard }), guard)
	}
	for _, m := range mutants {
		t.Run(m.guard, func(t *testing.T) {
			path, err := filepath.Abs(filepath.FromSlash(m.file))
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, 1, strings.Count(string(text), m.old), "%s has the guard once", m.file)
			if !*runMutants && !slices.Contains(alwaysRun, m.guard) {
				return
			}
			mutated := filepath.Join(t.TempDir(), filepath.Base(path))
			require.NoError(t, os.WriteFile(mutated, []byte(strings.Replace(string(text), m.old, m.new, 1)), 0o600))
			overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: mutated}})
			require.NoError(t, err)
			list := filepath.Join(t.TempDir(), "overlay.json")
			require.NoError(t, os.WriteFile(list, overlay, 0o600))
			out, err := exec.CommandContext(t.Context(), "go", "test", raced(t), "-vet=off", "-count=1", "-failfast", "-timeout=5m",
				"-overlay", list, "-run", m.test, "./"+m.in).CombinedOutput()
			require.Error(t, err, "no test notices that it is gone:\n%s", out)
			require.Contains(t, string(out), "--- FAIL: ", "it is compiled, and a test fails")
			t.Log(strings.Split(string(out[strings.Index(string(out), "--- FAIL: "):]), "\n")[0])
		})
	}
}

// raced returns the flag with which go test compiles as this test was compiled: what the
// mutant leaves as it is need not be compiled again.
func raced(t *testing.T) string {
	t.Helper()
	info, ok := debug.ReadBuildInfo()
	require.True(t, ok)
	return fmt.Sprintf("-race=%t", slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}))
}
