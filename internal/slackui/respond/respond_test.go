package respond

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// pressOf is an interaction of which these fields are set.
func pressOf(t *testing.T, raw string) inbound.Interaction {
	t.Helper()
	var p struct {
		Trigger string `json:"trigger_id"`
		User    struct {
			ID string `json:"id"`
		} `json:"user"`
		Container struct {
			Channel string `json:"channel_id"`
			Message string `json:"message_ts"`
		} `json:"container"`
		Actions []inbound.Press `json:"actions"`
		View    struct {
			ID   string `json:"id"`
			Hash string `json:"hash"`
		} `json:"view"`
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &p))
	i := inbound.Interaction{Trigger: inbound.Trigger{ID: p.Trigger}, User: p.User.ID, Channel: p.Container.Channel, MessageTS: p.Container.Message}
	i.View.ID, i.View.Hash = p.View.ID, p.View.Hash
	if len(p.Actions) > 0 {
		i.Press = p.Actions[0]
	}
	return i
}

// A request id is the same for the same press alone: each part of a press makes
// another one of it, and no part can pass for a piece of its neighbor.
func TestARequestNamesOnePress(t *testing.T) {
	type press struct {
		payload string
		ptr     ref.Pointer
		verdict approvals.Verdict
		reason  string
	}
	ptr := ref.Pointer{Batch: "batch-07-x", Call: "c1", Digest: approvals.DigestOf("batch-07-x", approvals.ToolCall{ID: "c1"})}
	other := ptr
	other.Call = "c2"
	amended := ptr
	amended.Digest = approvals.DigestOf("batch-07-x", approvals.ToolCall{ID: "c1", Args: []byte(`{"a":1}`)})
	moved := ptr
	moved.Batch = "batch-07-y"
	click := `{"trigger_id":"1.2.a","user":{"id":"U1"},"container":{"channel_id":"C1","message_ts":"1.1"},"actions":[{"action_id":"a.0","action_ts":"5.5"}]}`
	form := `{"user":{"id":"U1"},"view":{"id":"V1","hash":"h1"}}`
	long := strings.Repeat("1", 300)
	team, names := "T0COUNTER", map[approvals.RequestID]press{}
	for _, p := range []press{
		{click, ptr, approvals.Approve, ""},
		{click, ptr, approvals.Deny, ""},
		{click, ptr, approvals.Deny, "No."},
		{click, other, approvals.Approve, ""},
		{click, amended, approvals.Approve, ""},
		{click, moved, approvals.Approve, ""},
		{strings.Replace(click, "1.2.a", "1.2.b", 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "1.2.a", "", 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "1.2.a", long, 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "1.2.a", long+"1", 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "U1", "U2", 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "C1", "C2", 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "1.1", "1.2", 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "a.0", "a.1", 1), ptr, approvals.Approve, ""},
		{strings.Replace(click, "5.5", "5.6", 1), ptr, approvals.Approve, ""},
		{strings.NewReplacer("a.0", "a.05", "5.5", ".5").Replace(click), ptr, approvals.Approve, ""},
		{form, ptr, approvals.Deny, ""},
		{form, other, approvals.Deny, ""},
		{strings.Replace(form, "V1", "V2", 1), ptr, approvals.Deny, ""},
		{strings.Replace(form, "h1", "h2", 1), ptr, approvals.Deny, ""},
		{strings.NewReplacer("V1", "V1h", "h1", "1").Replace(form), ptr, approvals.Deny, ""},
	} {
		in := pressOf(t, p.payload)
		id := RequestID(team, in.IDs(), p.ptr, p.verdict, p.reason)
		require.NotContains(t, names, id, "%+v", p)
		require.Equal(t, id, RequestID(team, in.IDs(), p.ptr, p.verdict, p.reason))
		require.Len(t, string(id), len("slack-")+64)
		names[id] = p
	}
	team = "T0ANOTHER"
	for _, p := range names {
		in := pressOf(t, p.payload)
		require.NotContains(t, names, RequestID(team, in.IDs(), p.ptr, p.verdict, p.reason))
	}
}

// Every refusal of the core has words of its own: the narrower one is not
// swallowed by the wider one that it also is.
func TestEveryRefusalHasItsOwnWords(t *testing.T) {
	said := map[blockkit.Mrkdwn]error{}
	for err, says := range map[error]string{
		approvals.ErrSettled: "already decided", approvals.ErrExpired: "Too late", approvals.ErrOwnEdit: "You edited this call",
		approvals.ErrOwnRequest: "You asked for this", approvals.ErrNotEligible: "You can't approve this", approvals.ErrStale: "edited the arguments",
		approvals.ErrDecided: "You already approved", approvals.ErrNotFound: "no longer exists", approvals.ErrRefused: "policy refuses",
		approvals.ErrReasonNeeded: "needs a reason", approvals.ErrNoDecision: "no decision to take back", approvals.ErrAbsence: "60 days at most", ErrNoForm: "can't be edited here",
		approvals.ErrDenied: "Someone denied this call", approvals.ErrAmendments: "edited 10 times", approvals.ErrNotInDoubt: "it has not run", approvals.ErrInDoubt: "It isn't known whether",
		approvals.ErrConflict: "Try again", ref.ErrPointer: "damaged", ErrForm: "didn't open the form",
		inbound.ErrOtherTeam: "another Slack workspace", inbound.ErrNoTeam: "without a workspace", directory.ErrGone: "deactivated", directory.ErrBot: "bots", directory.ErrGuest: "Guests", directory.ErrStranger: "other organizations",
	} {
		words, known := Explain(fmt.Errorf("decide: %w", err), Subject{})
		require.True(t, known, err)
		require.Contains(t, words.String(), says)
		require.NotContains(t, said, words, err)
		said[words] = err
	}
	for words, err := range said {
		require.Regexp(t, `Nothing (changed|was decided|was started)`, words.String(), "%v", err)
		require.NotRegexp(t, `%!|  `, words.String(), "%v", err)
	}
	words, _ := Explain(approvals.ErrNotEligible, Subject{Attempt: Denying})
	require.Contains(t, words.String(), "You can't deny this. Nothing changed.")
	words, _ = Explain(approvals.ErrStale, Subject{Attempt: Editing})
	require.Contains(t, words.String(), "your edit wasn't saved")
	words, _ = Explain(&directory.LookupError{What: "group", ID: "C0ALL", Err: slackapi.ErrTooMany}, Subject{})
	require.Equal(t, "<#C0ALL> has more members than Countersign reads, so your permission couldn't be checked. Nothing changed. Tell your Countersign admin.", words.String())
	for _, err := range []error{errors.New("no connection"), approvals.ErrInvalid} {
		_, known := Explain(err, Subject{})
		require.False(t, known, "%v is not for people", err)
	}
}

// A call in doubt that nobody decided in time was decided by nobody, and may have happened.
func TestWhoAnswersAnExpiredDoubtReadsThatNobodyDecided(t *testing.T) {
	a := approvals.Approval{Status: approvals.Expired, Doubt: approvals.Doubt{Began: time.Unix(1, 0)}}
	words, known := Explain(approvals.ErrSettled, Subject{Attempt: Answering, Approval: a})
	require.True(t, known)
	require.Equal(t, "Nobody decided this in time. The call won't run again, and whether it took effect isn't known. Nothing changed.", words.String())
}
