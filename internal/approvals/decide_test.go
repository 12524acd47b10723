package approvals_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

// A click is what someone says, where the call stands after it, and what they
// are told.
type click struct {
	who  UserID
	say  Verdict
	want Status
	err  error
}

// groupsOf is who is in which group in the transcripts.
var groupsOf = map[UserID][]GroupID{
	"sam":  {"sre"},
	"sid":  {"sre"},
	"kim":  {"security"},
	"both": {"sre", "security", "lunch"},
}

const takeBack Verdict = "take back"

func TestTranscripts(t *testing.T) {
	two := all(of(2, "ann", "bo", "cy"))
	for name, tt := range map[string]struct {
		needs  Requirement
		clicks []click
	}{
		"two of three, then late": {two, []click{
			{"ann", Approve, Pending, nil},
			{"ann", Approve, Pending, nil}, // a double click counts once
			{"bo", Approve, Approved, nil},
			{"bo", Approve, Approved, ErrSettled},
			{"cy", Deny, Approved, ErrSettled},
		}},
		"one denial is enough": {two, []click{
			{"ann", Approve, Pending, nil},
			{"bo", Deny, Denied, nil},
			{"cy", Approve, Denied, ErrSettled},
		}},
		"two denials are asked for": {Requirement{Quorums: two.Quorums, Deny: 2}, []click{
			{"ann", Deny, Pending, nil},
			{"ann", Deny, Pending, nil},
			{"bo", Approve, Pending, nil},
			{"cy", Deny, Denied, nil},
		}},
		"a denial may lose": {Requirement{Quorums: two.Quorums, Deny: 2}, []click{
			{"ann", Deny, Pending, nil},
			{"bo", Approve, Pending, nil},
			{"cy", Approve, Approved, nil},
		}},
		"nobody says both": {two, []click{
			{"ann", Approve, Pending, nil},
			{"ann", Deny, Pending, ErrDecided},
			{"ann", takeBack, Pending, nil},
			{"ann", takeBack, Pending, ErrNoDecision},
			{"ann", Deny, Denied, nil},
			{"ann", takeBack, Denied, ErrSettled},
		}},
		"taken back does not count": {two, []click{
			{"ann", Approve, Pending, nil},
			{"ann", takeBack, Pending, nil},
			{"bo", Approve, Pending, nil},
			{"ann", Approve, Approved, nil},
		}},
		"outsiders": {two, []click{
			{"out", Approve, Pending, ErrNotEligible},
			{"out", Deny, Pending, ErrNotEligible},
			{"", Approve, Pending, ErrInvalid},
			{"\xff", Approve, Pending, ErrInvalid},
			{"ann", "", Pending, ErrInvalid},
			{"ann", "APPROVE", Pending, ErrInvalid},
		}},
		"the requester under separation": {Requirement{Quorums: []Quorum{of(1, "req", "ann")}, Separation: true}, []click{
			{"req", Approve, Pending, ErrOwnRequest},
			{"req", Deny, Pending, ErrOwnRequest},
			{"ann", Approve, Approved, nil},
		}},
		"the requester without separation": {all(of(1, "req")), []click{
			{"req", Approve, Approved, nil},
		}},
		"in both groups, one signature": {all(in(1, "sre"), in(1, "security")), []click{
			{"both", Approve, Pending, nil},
			{"sam", Approve, Approved, nil}, // both moves over to security
		}},
		"in both groups, the other way": {all(in(1, "sre"), in(1, "security")), []click{
			{"sam", Approve, Pending, nil},
			{"sid", Approve, Pending, nil},
			{"both", Approve, Approved, nil},
		}},
		"no quorums":            {Requirement{}, []click{{"ann", Approve, Pending, ErrNotEligible}}},
		"a quorum of nobody":    {all(of(0, "ann")), []click{{"ann", Approve, Pending, nil}}},
		"a quorum of minus one": {all(of(-1, "ann"), of(1, "ann")), []click{{"ann", Approve, Pending, nil}}},
		"one of two is nobody":  {all(of(1, "ann"), of(0)), []click{{"ann", Approve, Pending, nil}}},
		"an empty name, an empty group": {all(Quorum{Need: 1, From: From{Users: []UserID{""}, Groups: []GroupID{""}}}), []click{
			{"", Approve, Pending, ErrInvalid},
			{"sam", Approve, Pending, ErrNotEligible},
		}},
		"more than there are": {all(of(1<<62, "ann"), of(1<<62, "bo")), []click{
			{"ann", Approve, Pending, nil},
			{"bo", Approve, Pending, nil},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, tt.needs)
			for i, c := range tt.clicks {
				cmd := Command(say(b, c.who, c.say, append(groupsOf[c.who], "")...))
				if c.say == takeBack {
					cmd = Retract{Call: theCall, By: Principal{User: c.who}, At: opened.Add(time.Minute)}
				}
				next, events, err := b.Apply(cmd)
				require.ErrorIs(t, err, c.err, "click %d", i)
				require.Equal(t, c.want, next.Approvals[0].Status, "click %d", i)
				if err != nil {
					require.Empty(t, events)
				}
				b = next
			}
		})
	}
}

func TestDecideTellsTheFirstThingThatIsWrong(t *testing.T) {
	r := Requirement{Quorums: []Quorum{of(2, "ann", "bo", "req")}, Separation: true, Deadline: deadline}
	b := open(t, r)
	withCall, _, err := Open(
		Batch{ID: "b", Run: "r", Requester: "req", OpenedAt: opened},
		[]Deferral{{Call: ToolCall{ID: theCall, Name: "delete"}, Ask: Ask{Requirement: r}}},
		[]Deferral{{Call: ToolCall{ID: "ext", Name: "export"}}},
	)
	require.NoError(t, err)
	decided := must(t, b, say(b, "ann", Approve))
	expired := must(t, b, Expire{At: deadline})

	wrong := func(b Batch, who UserID, change func(*Decision)) Decide {
		d := say(b, who, "neither") // everything after what is tested is wrong as well
		d.Digest = Digest{1}
		if change != nil {
			change(&d.Decision)
		}
		return d
	}
	late := func(d *Decision) { d.At = deadline }
	for name, tt := range map[string]struct {
		b   Batch
		cmd Decide
		err error
	}{
		"unknown call":         {b, wrong(b, "req", func(d *Decision) { late(d); d.Call = "?" }), ErrNotFound},
		"external call":        {withCall, wrong(b, "req", func(d *Decision) { late(d); d.Call = "ext" }), ErrInvalid},
		"expired":              {expired, wrong(b, "req", nil), ErrExpired},
		"deadline not swept":   {b, wrong(b, "req", late), ErrExpired},
		"own request":          {b, wrong(b, "req", nil), ErrOwnRequest},
		"outsider":             {b, wrong(b, "out", nil), ErrNotEligible},
		"stale":                {b, wrong(b, "ann", nil), ErrStale},
		"no digest":            {b, wrong(b, "ann", func(d *Decision) { d.Digest = Digest{} }), ErrStale},
		"no verdict":           {decided, wrong(b, "ann", func(d *Decision) { d.Digest = b.Approvals[0].Call.Digest }), ErrInvalid},
		"the same again":       {decided, say(b, "ann", Approve), nil},
		"the opposite":         {decided, say(b, "ann", Deny), ErrDecided},
		"without a time":       {b, wrong(b, "ann", func(d *Decision) { d.At = time.Time{} }), ErrInvalid},
		"just before the end":  {b, func() Decide { d := say(b, "ann", Approve); d.At = deadline.Add(-1); return d }(), nil},
		"a reason too long":    {b, func() Decide { d := say(b, "ann", Deny); d.Reason = string(make([]byte, MaxReason+1)); return d }(), ErrInvalid},
		"a reason not in text": {b, func() Decide { d := say(b, "ann", Deny); d.Reason = "\xff"; return d }(), ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			before := snapshot(tt.b)
			next, _, err := tt.b.Apply(tt.cmd)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, before, snapshot(tt.b))
			if err != nil {
				require.Equal(t, before, snapshot(next))
			}
		})
	}
}

func TestADecisionIsRecordedWithTheGroupsThatMatter(t *testing.T) {
	zone := time.FixedZone("", 3600)
	b := open(t, all(in(2, "sre", "ops"), in(1, "security", "sre")))
	cmd := say(b, "ann", Approve, "zoo", "sre", "security", "sre", "")
	cmd.At, cmd.By.GroupsAt = cmd.At.In(zone), cmd.At.Add(-time.Second).In(zone)
	next, events, err := b.Apply(cmd)
	require.NoError(t, err)
	want := cmd.Decision
	want.By.Groups = []GroupID{"security", "sre"}
	want.At, want.By.GroupsAt = want.At.UTC(), want.By.GroupsAt.UTC()
	require.Equal(t, []Decision{want}, next.Approvals[0].Decisions)
	require.Equal(t, []Event{Decided{Batch: b.ID, Decision: want}}, events)

	// The fact does not share memory with the batch.
	events[0].(Decided).By.Groups[0] = "x"
	require.Equal(t, []Decision{want}, next.Approvals[0].Decisions)
	require.Equal(t, []GroupID{"ops", "security", "sre"}, b.Asked().Groups)
}

func TestFactsOfTheLastSignature(t *testing.T) {
	b := open(t, all(of(1, "ann")))
	cmd := say(b, "ann", Approve)
	next, events, err := b.Apply(cmd)
	require.NoError(t, err)
	require.Equal(t, []Event{
		Decided{Batch: b.ID, Decision: cmd.Decision},
		Settled{Batch: b.ID, Call: theCall, Status: Approved, At: cmd.At},
		Resolved{Batch: b.ID, Run: b.Run, At: cmd.At},
	}, events)
	require.Equal(t, b.Version+1, next.Version)
	require.True(t, next.Settled())
	require.Empty(t, next.Asked().Groups)
}

func TestProgress(t *testing.T) {
	b := open(t, all(in(2, "sre"), in(1, "security"), of(0, "ann")))
	seats := func() string {
		s := ""
		for _, p := range b.Approvals[0].Progress() {
			s += fmt.Sprintf("%d%v ", p.Quorum.Need, p.By)
		}
		return s
	}
	for _, step := range []struct {
		who  UserID
		want string
	}{
		{"both", "2[both] 1[] 0[] "},
		{"sam", "2[both sam] 1[] 0[] "},
		{"ann", "2[both sam] 1[] 0[] "},
		{"sid", "2[sam sid] 1[both] 0[] "},
	} {
		b = must(t, b, say(b, step.who, Approve, groupsOf[step.who]...))
		require.Equal(t, step.want, seats())
	}
	require.Equal(t, Pending, b.Approvals[0].Status, "one quorum needs nobody and is never met")
	b.Approvals[0].Progress()[0].Quorum.From.Groups[0] = "x"
	require.Equal(t, GroupID("sre"), b.Approvals[0].Requirement.Quorums[0].From.Groups[0])
}

func TestProgressIsOfApprovals(t *testing.T) {
	b := open(t, Requirement{Quorums: []Quorum{in(2, "sre")}, Deny: 2})
	b = must(t, b, say(b, "sam", Deny, "sre"), say(b, "sid", Approve, "sre"))
	require.Equal(t, []Seat{{User: "sid"}}, b.Approvals[0].Progress()[0].By)
	require.Equal(t, []GroupID{"sre"}, b.Asked().Groups)
	b = must(t, b, say(b, "both", Deny, "sre"))
	require.Empty(t, b.Asked().Groups, "nobody needs looking up any more")
}

// Who looks for what delegates decided in the place of a person finds that it was taken back.
func TestTheFactOfADecisionTakenBackSaysWhoWasAwayThen(t *testing.T) {
	r := all(of(2, "ann", "bo"))
	r.Delegation = true
	b := open(t, r)
	stands := say(b, "cy", Approve)
	stands.By.For = []Absent{{User: "bo", Until: deadline}}
	b = must(t, b, stands)
	at := opened.Add(time.Hour)
	next, events, err := b.Apply(Retract{Call: theCall, By: Principal{User: "cy"}, At: at}) // bo is back
	require.NoError(t, err)
	require.Equal(t, []Event{Retracted{Batch: b.ID, Call: theCall, By: b.Approvals[0].Decisions[0].By, At: at}}, events)
	require.Empty(t, next.Approvals[0].Decisions)
}

func TestNothingIsTakenBackAfterTheDeadline(t *testing.T) {
	b := open(t, Requirement{Quorums: []Quorum{of(2, "ann", "bo")}, Deadline: deadline})
	b = must(t, b, say(b, "ann", Approve))
	late := Retract{Call: theCall, By: Principal{User: "ann"}, At: deadline}
	_, _, err := b.Apply(late)
	require.ErrorIs(t, err, ErrExpired, "swept or not")
	late.At = deadline.Add(-1)
	next, events, err := b.Apply(late)
	require.NoError(t, err)
	require.Equal(t, []Event{Retracted{Batch: b.ID, Call: theCall, By: Principal{User: "ann"}, At: late.At}}, events)
	require.Empty(t, next.Approvals[0].Decisions)
	b.Approvals[0].Requirement.Delegation = true
	late.By.For = []Absent{{User: "bo", Until: deadline}}
	_, again, err := b.Apply(late)
	require.NoError(t, err)
	require.Equal(t, events, again, "whomever it was for, it is one's own word")
	for _, bad := range []Retract{{Call: "?", By: late.By, At: opened}, {Call: theCall, At: opened}, {Call: theCall, By: late.By}} {
		_, _, err := b.Apply(bad)
		require.Error(t, err)
	}
}

// cpu is the time that this process has computed. What others do on the machine is not
// in it.
func cpu(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &used))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestALargeQuorumIsQuick(t *testing.T) {
	var users []UserID
	for i := range MaxNamed {
		users = append(users, UserID(fmt.Sprint("u", i)))
	}
	// Half are in both: the matching has to move most of them.
	b := open(t, all(of(MaxNamed/2, users...), of(MaxNamed/2, users[:MaxNamed/2]...)))
	start := cpu(t)
	for _, u := range users {
		b = must(t, b, say(b, u, Approve))
	}
	require.Equal(t, Approved, b.Approvals[0].Status)
	require.Less(t, cpu(t)-start, 5*time.Second)
}
