package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/intake"
)

// admin is what an operator reads beside the running bot.
func (f *follower) admin(args ...string) string {
	f.t.Helper()
	var out, logged bytes.Buffer
	err := run(f.t.Context(), append(append([]string{"admin"}, args...), "--config", f.o.Path), f.o.Environ, &out, &logged)
	require.NoError(f.t, err, logged.String())
	return out.String()
}

func adminJSON[T any](f *follower, args ...string) []T {
	f.t.Helper()
	var all []T
	require.NoError(f.t, json.Unmarshal([]byte(f.admin(append(args, "--json")...)), &all))
	return all
}

// requireNothingForeign fails if arguments, or what people or models wrote, is in a
// text for operators.
func requireNothingForeign(t *testing.T, text string) {
	t.Helper()
	for _, words := range []string{"a.txt", "clean up", "That is all."} {
		require.NotContains(t, text, words)
	}
}

func TestTheListOfRequestsCountsCallsOfWhichItSaysTheSame(t *testing.T) {
	t.Parallel()
	row := waitingRow{Calls: []waitingCall{{Tool: "delete_row", Status: approvals.Pending}, {Tool: "pay", Status: approvals.Pending}, {Tool: "delete_row", Status: approvals.Pending}}}
	require.Contains(t, row.line(), "\t2× delete_row pending, pay pending")
}

// An operator reads what waits, and then the whole story of the run, across the
// pause and in order.
func TestAnOperatorReadsTheStoryOfARun(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	listed := f.admin("list")
	require.Contains(t, listed, string(f.id)+"\tsince ")
	require.Contains(t, listed, "\tagent ops\tfor U0ALICE\t")
	require.Regexp(t, `\tdelete_file pending \(rule default@[0-9a-f]+\)\t`, listed)
	require.Contains(t, listed, "1 request waits\n")
	rows := adminJSON[waitingRow](f, "list")
	require.Len(t, rows, 1)
	require.Regexp(t, `^default@`, rows[0].Calls[0].Rule)
	first := string(rows[0].Run)
	before := f.admin("run", first)
	require.Contains(t, before, first+" is deferred\n")

	f.approves()
	require.Equal(t, "0 requests wait\n", f.admin("list"))
	story := f.admin("run", first)
	at := 0
	for _, want := range []string{
		"agent ops was asked for by U0ALICE\t", "the model was given a prompt", "it calls delete_file", "people are asked about delete_file",
		"U0BOB decided: approve\t", "the call is approved; the rule " + rows[0].Calls[0].Rule + " asked\t", "everything is decided", "agent ops takes up the answers", "delete_file began",
		"delete_file ended after", "what became of the call: failed", "the model was given the result of delete_file: failed", "the run is completed\t", " is completed\n",
	} {
		found := strings.Index(story[at:], want)
		require.GreaterOrEqual(t, found, 0, "%q is next in\n%s", want, story)
		at += found
	}
	last := regexp.MustCompile(`(run-\S+) is completed\n$`).FindStringSubmatch(story)[1]
	require.NotEqual(t, first, last)
	require.Equal(t, story, f.admin("run", string(f.id)), "the log names the batch of a decision, and not the run")
	require.Equal(t, story, f.admin("run", last), "it is one story, whichever run one asks for")
	moments := adminJSON[moment](f, "run", first)
	require.Len(t, moments, strings.Count(story, "\n")-1)
	of := func(kind momentKind) moment {
		at := slices.IndexFunc(moments, func(m moment) bool { return m.Kind == kind })
		require.GreaterOrEqual(t, at, 0, kind)
		return moments[at]
	}
	require.Equal(t, approvals.UserID("U0ALICE"), of(factOpened).By)
	require.False(t, of(factOpened).Digest.IsZero())
	require.Equal(t, of(factOpened).Digest, of(factDecided).Digest, "who reads the story sees that what was shown is what was approved")
	require.Equal(t, rows[0].Calls[0].Rule, of(factSettled).Rule)
	for _, text := range []string{listed, before, story, f.admin("run", first, "--json")} {
		requireNothingForeign(t, text)
	}
	require.Empty(t, adminJSON[parkedRow](f, "parked"))

	// The journal is stored after the call has ended, and may be by a while.
	journal, err := f.b.store.Journal(t.Context(), approvals.RunID(last))
	require.NoError(t, err)
	require.Len(t, journal, 1)
	journal[0].At = journal[0].At.Add(time.Hour)
	require.NoError(t, f.b.store.Commit(t.Context(), agentrun.Commit{Request: "slow", Entries: journal}))
	require.Equal(t, story, f.admin("run", last))
}

// What was given up is listed also when its record is damaged, with what is stored beside
// it.
func TestAnOperatorSeesWhatIsParkedAndCannotBeRead(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	first := string(adminJSON[waitingRow](f, "list")[0].Run)
	at := f.b.store.Prefix() + ":{p" + string(f.id)[len("batch-"):][:2] + "}:"
	// Nothing is to be resumed yet, so no commit of the bot takes the record away.
	f.redis.HSet(at+"parked", "resumes|"+string(f.id), "damaged")
	require.Contains(t, f.admin("run", first), "at an unknown time\twork was given up and its record cannot be read: resumes (unreadable); bot admin retry resumes "+string(f.id)+"\t")

	_, err := f.redis.ZAdd(at+"parkedruns", float64(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC).UnixMicro()), first)
	require.NoError(t, err)
	f.redis.HSet(at+"run:"+first, "d", "damaged")
	require.Equal(t, "runs\t"+first+"\tcannot be read\tsince 2026-03-04T05:06:07Z\tunreadable\n"+
		"resumes\t"+string(f.id)+"\tcannot be read\tsince unknown\tunreadable\n2 parked\n", f.admin("parked"))
	require.NotContains(t, f.admin("parked", "--json"), "0001")

	for n := range mostParked {
		id := fmt.Sprintf("%s-%d", first, n)
		_, err := f.redis.ZAdd(at+"parkedruns", 1, id)
		require.NoError(t, err)
		f.redis.HSet(at+"run:"+id, "v", "1", "d", "damaged")
	}
	require.Contains(t, f.admin("parked"), fmt.Sprintf("\n%d parked, and there are more\n", mostParked+1), "the list of runs is not whole")
}

// Of a run whose messages are damaged, which is parked for it, all the rest is told.
func TestTheStoryOfARunWithDamagedMessagesIsTold(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	first := string(adminJSON[waitingRow](f, "list")[0].Run)
	for _, key := range f.redis.Keys() {
		if strings.Contains(key, ":messages:") {
			f.redis.Del(key)
			_, err := f.redis.Push(key, "damaged", "damaged", "damaged")
			require.NoError(t, err)
		}
	}
	for _, json := range []bool{false, true} {
		var out, logged bytes.Buffer
		err := run(t.Context(), []string{"admin", "run", first, "--config", f.o.Path, fmt.Sprintf("--json=%v", json)}, f.o.Environ, &out, &logged)
		require.ErrorContains(t, err, "the rest is told, but not this: decode message 0 of thread-")
		require.Contains(t, out.String(), "agent ops was asked for by U0ALICE")
		require.Contains(t, out.String(), "people are asked about delete_file")
		requireNothingForeign(t, out.String()+err.Error())
	}
}

// The facts tell what people decided also when the request itself is damaged.
func TestTheStoryOfADamagedRequestIsToldByItsFacts(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	f.approves()
	f.redis.HSet(f.b.store.Prefix()+":{p"+string(f.id)[len("batch-"):][:2]+"}:batch:"+string(f.id), "d", "damaged")
	story := f.admin("run", runIn(f))
	require.Contains(t, story, "U0BOB decided: approve\t")
	require.Regexp(t, `the call is approved; the rule default@[0-9a-f]+ asked\t`, story)
}

// The calls that an agent elsewhere hands in are no answer of a model of this program.
func TestTheStoryOfARemoteRequestHasNoModel(t *testing.T) {
	t.Parallel()
	var said []string
	spoken(agentrun.Response{Parts: []agentrun.ResponsePart{agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "c1", Name: "wipe"}}}}, func(m moment) { said = append(said, m.What) })
	require.Equal(t, []string{"it calls wipe"}, said)
}

// Someone who is asked why a person who is in no quorum could approve finds it in the
// story, and so does someone who is asked who took a request back.
func TestTheStoryOfARunSaysInWhosePlacePeopleDecide(t *testing.T) {
	t.Parallel()
	var said []moment
	deputy := approvals.Principal{User: "U0DAVE", For: []approvals.Absent{{User: "U0BOB"}}}
	for _, e := range []approvals.Event{
		approvals.Decided{Decision: approvals.Decision{By: deputy, Verdict: approvals.Approve}},
		approvals.Retracted{By: deputy},
		approvals.Amended{By: deputy},
		approvals.Settled{Status: approvals.Withdrawn, By: "service:refunds"},
	} {
		factOf(e, func(m moment) { said = append(said, m) })
	}
	for i, what := range []string{"decided: approve", "took their decision back", "changed the arguments"} {
		require.Equal(t, "U0DAVE, a delegate of U0BOB, "+what, said[i].What)
		require.Equal(t, []approvals.UserID{"U0BOB"}, said[i].DelegateOf)
	}
	require.Equal(t, "the call is withdrawn by service:refunds", said[3].What)
}

// People are asked about some calls of a request. The story says of the others too what
// the policy said, by which rule, and what became of them.
func TestTheStoryOfARequestHasTheCallsThatThePolicyDecides(t *testing.T) {
	t.Parallel()
	h := newWebhookBot(t)
	client := h.b.remote[0].client
	client.Credential = "token:0"
	r, err := h.b.intake.Ask(t.Context(), client, intake.Ask{Door: intake.DoorAPI, ExternalID: "e", Calls: []intake.Call{
		{ID: "c1", Tool: "lookup", Args: json.RawMessage(`{"path":"a.txt"}`)}, {ID: "c2", Tool: "drop", Args: json.RawMessage(`{}`)},
	}})
	require.NoError(t, err)
	_, err = h.b.intake.Claim(t.Context(), client, r.ID, "c1")
	require.NoError(t, err)
	_, err = h.b.intake.Report(t.Context(), client, r.ID, "c1", intake.Report{State: approvals.Ran, Took: time.Second, Words: "clean up"})
	require.NoError(t, err)

	var said []string
	moments := adminJSON[moment](h.follower, "run", string(r.ID))
	for _, m := range moments {
		said = append(said, strings.TrimSpace(string(m.Kind)+" "+string(m.Call)+" "+regexp.MustCompile(`@.*`).ReplaceAllString(m.Rule, "")+" "+m.State))
	}
	require.Equal(t, []string{
		"run_created", "call_made c1", "permitted c1 lookups", "call_made c2", "refused c2 drops", "result_given c2", "run_ended",
		"concluded c1  claimed", "concluded c1  ran",
	}, said)
	require.Equal(t, r.Calls[0].Digest, moments[2].Digest)
	story := h.admin("run", string(r.ID))
	require.Contains(t, story, "\tthe policy permits lookup, by the rule "+r.Calls[0].Rule+"\t")
	require.Contains(t, story, "\tthe policy refuses drop, by the rule "+r.Calls[1].Rule+"\t")
	requireNothingForeign(t, story)
}

// The policy can refuse a call that people approved when its agent claims it. That happened
// once, so the story says it once, with the batch in which they approved.
func TestTheStoryOfARequestSaysOnceThatAClaimWasRefused(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0).UTC() }
	var s story
	one := teller{
		story: &s, run: agentrun.Run{ID: "run1", Agent: "claude", Status: agentrun.RunCompleted, Deferred: "b1", CreatedAt: at(0), EndedAt: at(2)},
		rules: map[approvals.ToolCallID]string{"c1": "default@1"},
		ruled: map[approvals.ToolCallID]intake.CallStatus{"c1": {ID: "c1", Tool: "pay", Outcome: intake.OutcomeRefused, Rule: "limit@1", DecidedAt: at(3)}},
	}
	one.tell([]agentrun.Message{
		agentrun.Response{At: at(0), Parts: []agentrun.ResponsePart{agentrun.CallPart{ToolCall: approvals.ToolCall{ID: "c1", Name: "pay"}}}},
	}, []approvals.Event{
		approvals.Opened{Batch: "b1", Approvals: []approvals.CallRef{{ID: "c1", Name: "pay"}}, At: at(0)},
		approvals.Settled{Batch: "b1", Call: "c1", Status: approvals.Approved, At: at(1)},
		approvals.Concluded{Batch: "b1", Call: "c1", State: approvals.Refused, Rule: "limit@1", At: at(3)},
	}, true)
	var said []string
	for _, m := range s.moments() {
		if m.Rule == "limit@1" {
			said = append(said, string(m.Batch)+" "+m.What)
		}
	}
	require.Equal(t, []string{"b1 what became of the call: refused by the rule limit@1"}, said)
}

// An agent can claim a call before the others of its request are decided, and a gateway
// claims a call before it executes it. The story tells the claim where it happened.
func TestTheStoryOfARequestHasAClaimInItsPlace(t *testing.T) {
	t.Parallel()
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0).UTC() }
	var s story
	one := teller{story: &s, run: agentrun.Run{ID: "run1", Agent: "claude", Status: agentrun.RunCompleted, Deferred: "b1", CreatedAt: at(0), EndedAt: at(5)}}
	one.tell(nil, []approvals.Event{
		approvals.Opened{Batch: "b1", Approvals: []approvals.CallRef{{ID: "c1", Name: "pay"}, {ID: "c2", Name: "pay"}}, At: at(0)},
		approvals.Settled{Batch: "b1", Call: "c1", Status: approvals.Approved, At: at(1)},
		approvals.Concluded{Batch: "b1", Call: "c1", State: approvals.Claimed, At: at(2)},
		approvals.Settled{Batch: "b1", Call: "c2", Status: approvals.Denied, At: at(4)},
		approvals.Resolved{Batch: "b1", At: at(4)},
		approvals.Concluded{Batch: "b1", Call: "c1", State: approvals.Ran, At: at(8)},
	}, false)
	two := teller{story: &s, run: agentrun.Run{ID: "run2", Agent: "claude", Parent: "run1", Batch: "b1", Status: agentrun.RunCompleted, CreatedAt: at(6), EndedAt: at(9)}}
	two.journal = []agentrun.Entry{{Call: "c1", Tool: "pay", State: agentrun.EntryFinished, At: at(8), Finish: agentrun.Finish{Part: agentrun.ToolReturn{CallID: "c1", ToolName: "pay", Outcome: agentrun.OutcomeSuccess, At: at(8)}, Took: time.Second}}}
	two.tell(nil, nil, true)
	var said []string
	for _, m := range s.moments() {
		if m.Call == "c1" || m.Kind == factResolved {
			said = append(said, m.What)
		}
	}
	require.Equal(t, []string{
		"people are asked about pay", "the call is approved", "what became of the call: claimed", "everything is decided", "pay began", "pay ended after 1s", "what became of the call: ran",
	}, said)
}

// The log names the run of a message that superseded calls. Its story leads on to the run
// that answers the message.
func TestTheStoryOfAMergedRunNamesTheBatchThatItEnded(t *testing.T) {
	t.Parallel()
	m := endedOf(agentrun.Run{Status: agentrun.RunMerged, Supersedes: "batch-01-x"})
	require.Equal(t, approvals.BatchID("batch-01-x"), m.Batch)
	require.Equal(t, "the run is merged into the one that takes up the answers", m.What)
}

// Programs compare the times that they read, whatever the time zone of the machine is.
func TestTimesForOperatorsAreInUTC(t *testing.T) {
	t.Parallel()
	const zone = "America/New_York"
	if os.Getenv("TZ") != zone {
		there := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		there.Env = append(os.Environ(), "TZ="+zone)
		out, err := there.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return
	}
	_, offset := time.Now().Zone()
	require.NotZero(t, offset)
	h := newWebhookBot(t)
	r := h.ask("e")
	_, err := h.b.intake.Withdraw(t.Context(), h.b.remote[0].client, r.ID, "")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(h.messages()) == 2 && h.idle() }, time.Minute, 10*time.Millisecond)
	for _, command := range [][]string{{"run", string(r.ID)}, {"deliveries", string(r.ID)}, {"webhooks"}, {"size"}} {
		text := h.admin(append(command, "--json")...)
		require.Regexp(t, `"\d{4}-\d\d-\d\dT\d\d:\d\d:[\d.]+Z"`, text)
		require.NotRegexp(t, `\d\d:\d\d:[\d.]+[+-]\d\d:\d\d"`, text)
	}
}

// Every kind of key that a bot writes has a size and a reason.
func TestAnOperatorReadsWhatIsInRedisAndWhy(t *testing.T) {
	t.Parallel()
	f := deferral(t)
	sizes := f.admin("size")
	requireNothingForeign(t, sizes)
	require.Regexp(t, `\n\d+ keys, \d+\.\d kB under ours\n$`, sizes)
	rows := adminJSON[sizeRow](f, "size")
	keys, why := map[string]int{}, map[string]string{}
	for _, r := range rows {
		why[r.Kind] = r.Why
		keys[r.Kind] = r.Keys
		require.NotEmpty(t, r.Why, r.Kind)
		require.False(t, r.Estimated)
	}
	for _, kind := range []string{"batch", "run", "thread", "messages", "args", "facts", "request", "memo:cards"} {
		require.Positive(t, keys[kind], kind)
	}
	require.Equal(t, 1, keys["batch"])
	require.Contains(t, why["memo:cards"], "as long as the request or run")
	require.Contains(t, why["memo:user"], "accounts", "it belongs to no request")
}

// The name of a tool and the id of a call are what a model wrote: it can write what a
// terminal obeys or hides, a further column, and a further line.
func TestWhatAModelWroteStaysInItsColumn(t *testing.T) {
	t.Parallel()
	const hostile = "rm\x1b[2J\u009b31m\u202etxt\u200b\nrun-1 is completed\tno"
	const shown = `rm\u001b[2J\u009b31m\u202etxt\u200b\nrun-1 is completed\tno`
	var said []moment
	spoken(agentrun.Response{Parts: []agentrun.ResponsePart{agentrun.CallPart{ToolCall: approvals.ToolCall{ID: hostile, Name: hostile}}}}, func(m moment) { said = append(said, m) })
	require.Len(t, said, 1)
	said[0].Call = hostile
	require.Equal(t, "at an unknown time\tit calls "+shown+"\t"+shown+"\n", said[0].line())

	row := waitingOf(approvals.Batch{ID: "batch-1", Agent: "ops", Approvals: []approvals.Approval{{Call: approvals.CallRef{ID: hostile, Name: hostile}, Status: approvals.Pending}}})
	require.Contains(t, row.line(), "\t"+shown+" pending")
	require.Equal(t, 1, strings.Count(row.line(), "\n"))

	var out bytes.Buffer
	require.NoError(t, admin{stdout: &out}.sayJSON([]waitingRow{row}))
	require.NotRegexp(t, `[^\n -~]`, out.String(), "a terminal shows all of it")
	var same []waitingRow
	require.NoError(t, json.Unmarshal(out.Bytes(), &same))
	require.Equal(t, hostile, same[0].Calls[0].Tool, "a program reads what is there")
}
