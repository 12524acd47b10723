package approvals_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

func named(name string, q Quorum) Quorum { q.Name = name; return q }

func choice(c, option int, q Quorum) Quorum { q.Choice, q.Option = c, option; return q }

func later(q Quorum) Quorum { q.Stage++; return q }

func TestARequirementThatCannotBeFollowedIsRefused(t *testing.T) {
	ann := of(1, "ann")
	var tooMany, justEnough []Quorum
	for c := range 7 {
		for o := range 2 {
			q := choice(c+1, o, ann)
			if tooMany = append(tooMany, q); c < 6 {
				justEnough = append(justEnough, q)
			}
		}
	}
	ladder := func(rungs ...Rung) Requirement {
		return Requirement{Quorums: []Quorum{named("ops", ann), named("security", ann)}, Ladder: rungs}
	}
	at, add := opened.Add(time.Hour), From{Users: []UserID{"bo"}}
	for name, tt := range map[string]struct {
		r   Requirement
		err error
	}{
		"64 ways":                     {all(justEnough...), nil},
		"128 ways":                    {all(tooMany...), ErrInvalid},
		"a choice in two stages":      {all(choice(1, 0, ann), choice(1, 1, later(ann))), ErrInvalid},
		"two choices in two stages":   {all(choice(1, 0, ann), choice(2, 1, later(ann))), nil},
		"needed always, in stages":    {all(ann, later(ann)), nil},
		"two of one name":             {all(named("ops", ann), named("ops", ann)), ErrInvalid},
		"two of no name":              {all(ann, ann), nil},
		"two vetoes of one name":      {Requirement{Vetoes: []Quorum{named("ops", ann), named("ops", ann)}}, ErrInvalid},
		"a veto named like a quorum":  {Requirement{Quorums: []Quorum{named("ops", ann)}, Vetoes: []Quorum{named("ops", ann)}}, nil},
		"a ladder":                    {ladder(Rung{At: at, Kind: Remind}, Rung{At: at, Kind: Escalate, Quorum: "security", Add: add, Channel: "C"}), nil},
		"a channel alone":             {ladder(Rung{At: at, Kind: Escalate, Channel: "C"}), nil},
		"out of order":                {ladder(Rung{At: at, Kind: Remind}, Rung{At: at.Add(-1), Kind: Remind}), ErrInvalid},
		"a rung without a time":       {ladder(Rung{Kind: Remind}), ErrInvalid},
		"of no kind":                  {ladder(Rung{At: at}), ErrInvalid},
		"of an unknown kind":          {ladder(Rung{At: at, Kind: "call"}), ErrInvalid},
		"of an unknown quorum":        {ladder(Rung{At: at, Kind: Escalate, Quorum: "sales", Add: add}), ErrInvalid},
		"of an unknown, in a channel": {ladder(Rung{At: at, Kind: Escalate, Quorum: "sales", Channel: "C"}), ErrInvalid},
		"people for no quorum":        {ladder(Rung{At: at, Kind: Escalate, Add: add, Channel: "C"}), ErrInvalid},
		"an escalation to nothing":    {ladder(Rung{At: at, Kind: Escalate, Quorum: "ops"}), ErrInvalid},
		"a reminder that adds":        {ladder(Rung{At: at, Kind: Remind, Add: add}), ErrInvalid},
		"a reminder of a quorum":      {ladder(Rung{At: at, Kind: Remind, Quorum: "ops"}), ErrInvalid},
		"a reminder alone":            {ladder(Rung{At: at, Kind: Remind}), nil},
		"a reminder in a channel":     {ladder(Rung{At: at, Kind: Remind, Channel: "C"}), ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			deferral := Deferral{Call: ToolCall{ID: theCall, Name: "delete"}, Ask: Ask{Requirement: tt.r, Rule: "prod@0123abcd"}}
			b, _, err := Open(Batch{ID: "b", Run: "r", OpenedAt: opened}, []Deferral{deferral}, nil)
			require.ErrorIs(t, err, tt.err)
			if err == nil {
				require.Equal(t, "prod@0123abcd", b.Approvals[0].Rule)
			}
			b = open(t, ladder(Rung{At: opened, Kind: Remind}))
			b = must(t, b, Climb{At: opened})
			next, _, err := b.Apply(Amend{
				Call: theCall, From: b.Approvals[0].Call.Digest, Args: []byte(`{}`), Ruling: deferral.Ask,
				By: Principal{User: "req"}, At: opened,
			})
			require.ErrorIs(t, err, tt.err)
			if err == nil {
				require.Equal(t, "prod@0123abcd", next.Approvals[0].Rule)
				require.Zero(t, next.Approvals[0].Climbed, "the ladder of the new rule begins at its foot")
			}
		})
	}
}

func TestOpenKeepsItsOwnCopyOfWhatAPolicyKnows(t *testing.T) {
	ran := map[string]int{"read": 1}
	r := Requirement{
		Quorums: []Quorum{named("ops", of(1, "ann"))}, Vetoes: []Quorum{in(1, "security")},
		Ladder: []Rung{{At: opened, Kind: Escalate, Quorum: "ops", Add: From{Users: []UserID{"bo"}, Groups: []GroupID{"sre"}}}},
	}
	b, _, err := Open(
		Batch{ID: "b", Run: "r", SoFar: SoFar{Steps: 2, Executed: ran, Failed: ran, Denied: ran}},
		[]Deferral{{Call: ToolCall{ID: theCall, Name: "x"}, Ask: Ask{Requirement: r}}}, nil,
	)
	require.NoError(t, err)
	before := snapshot(b)
	climbed, events, err := b.Apply(Climb{At: opened})
	require.NoError(t, err)
	after := snapshot(climbed)
	events[0].(Escalated).Add.Users[0] = "x"
	ran["read"], r.Vetoes[0].From.Groups[0], r.Ladder[0].Add.Users[0], r.Ladder[0].Add.Groups[0] = 2, "x", "x", "x"
	require.Equal(t, before, snapshot(b))
	require.Equal(t, after, snapshot(climbed))
	require.Equal(t, []GroupID{"security", "sre"}, climbed.Asked().Groups)
	require.Equal(t, []GroupID{"security"}, b.Asked().Groups)
}

// A line is what Progress says: who fills the places, a star where it is asked.
func lines(a Approval) (all []string) {
	for _, p := range a.Progress() {
		star := map[bool]string{true: "*"}[p.Asked]
		all = append(all, fmt.Sprintf("%s%s %v", p.Quorum.Name, star, p.By))
	}
	return all
}

func TestAlternativesAndStages(t *testing.T) {
	b := open(t, all(
		later(named("boss", of(1, "kim"))),
		named("ops", of(1, "ann", "bo")),
		choice(1, 0, named("security", of(1, "sue"))),
		choice(1, 1, named("leads", of(2, "ann", "bo", "lee"))),
	))
	for _, step := range []struct {
		who  UserID
		want []string
		help []UserID
	}{
		{"", []string{"boss []", "ops* []", "security* []", "leads* []"}, []UserID{"ann", "bo", "lee", "sue"}},
		{"kim", []string{"boss [kim]", "ops* []", "security* []", "leads* []"}, []UserID{"ann", "bo", "lee", "sue"}},
		{"ann", []string{"boss [kim]", "ops* [ann]", "security* []", "leads* []"}, []UserID{"bo", "lee", "sue"}},
		{"lee", []string{"boss [kim]", "ops* [ann]", "security* []", "leads* [lee]"}, []UserID{"bo", "sue"}},
	} {
		if step.who != "" {
			b = must(t, b, say(b, step.who, Approve))
		}
		require.Equal(t, step.want, lines(b.Approvals[0]), step.who)
		var help []UserID
		for _, u := range []UserID{"ann", "bo", "kim", "lee", "out", "sue"} {
			if b.Helps(b.Approvals[0], Principal{User: u}) {
				help = append(help, u)
			}
		}
		require.Equal(t, step.help, help, step.who)
	}
	require.Equal(t, Approved, must(t, b, say(b, "bo", Approve)).Approvals[0].Status, "the leads")
	b = must(t, b, say(b, "sue", Approve))
	require.Equal(t, Approved, b.Approvals[0].Status, "security")
	require.Equal(t, []string{"boss* [kim]", "ops* [ann]", "security* [sue]", "leads* [lee]"}, lines(b.Approvals[0]))
	require.False(t, b.Helps(b.Approvals[0], Principal{User: "bo"}))
}

func TestWhoIsMissingIsNoAlternativeToWhoHasApproved(t *testing.T) {
	b := open(t, all(
		named("ops", in(1, "ops")),
		choice(1, 0, named("security", of(1, "sue"))),
		choice(1, 1, named("leads", of(2, "ann", "bo"))),
	))
	require.Equal(t, From{Users: []UserID{"ann", "bo", "sue"}, Groups: []GroupID{"ops"}}, b.Approvals[0].Missing())
	half := must(t, b, say(b, "ann", Approve))
	require.Equal(t, From{Users: []UserID{"ann", "bo", "sue"}, Groups: []GroupID{"ops"}}, half.Approvals[0].Missing())
	require.Equal(t, From{Groups: []GroupID{"ops"}}, must(t, b, say(b, "sue", Approve)).Approvals[0].Missing())
	require.Equal(t, From{Users: []UserID{"ann", "bo", "sue"}}, must(t, b, say(b, "cy", Approve, "ops")).Approvals[0].Missing())
}

func TestAVetoDeniesAndDoesNotApprove(t *testing.T) {
	b := open(t, Requirement{
		Quorums: []Quorum{of(2, "ann", "bo")}, Deny: 2,
		Vetoes: []Quorum{in(2, "security"), of(1, "ciso")},
	})
	require.Equal(t, []GroupID{"security"}, b.Asked().Groups)
	for _, step := range []struct {
		cmd  Decide
		want Status
		err  error
	}{
		{say(b, "kim", Approve, "security"), Pending, ErrNotEligible},
		{say(b, "kim", Deny, "security"), Pending, nil},
		{say(b, "ann", Deny), Pending, nil}, // kim is none of the two who deny
		{say(b, "sid", Deny), Pending, ErrNotEligible},
		{say(b, "sue", Deny, "security"), Denied, nil},
	} {
		next, _, err := b.Apply(step.cmd)
		require.ErrorIs(t, err, step.err)
		require.Equal(t, step.want, next.Approvals[0].Status)
		b = next
	}
	// A veto is nobody's alternative, whatever it says.
	for _, c := range []int{-1, 1, 2} {
		b = open(t, Requirement{Quorums: []Quorum{choice(1, 0, of(1, "ann")), choice(1, 1, of(1, "bo"))}, Vetoes: []Quorum{
			choice(c, 0, of(1, "ciso")), choice(c, 1, of(1, "kim")),
		}, Deny: 2})
		for _, u := range []UserID{"ciso", "kim"} {
			require.Equal(t, Denied, must(t, b, say(b, u, Deny)).Approvals[0].Status)
		}
	}
	b = open(t, Requirement{Quorums: []Quorum{of(1, "ann")}, Deny: 2, Vetoes: []Quorum{of(1, "ciso")}, ReasonNeeded: true})
	for _, reason := range []string{"", " \n\u200b"} {
		d := say(b, "ann", Approve)
		d.Reason = reason
		_, _, err := b.Apply(d)
		require.ErrorIs(t, err, ErrReasonNeeded)
	}
	d := say(b, "ann", Approve)
	d.Reason = "planned"
	require.Equal(t, Approved, must(t, b, d).Approvals[0].Status)
	require.Equal(t, Denied, must(t, b, say(b, "ciso", Deny)).Approvals[0].Status, "a denial needs none")
}

func TestWhomASignatureIsForIsRecorded(t *testing.T) {
	soon := opened.Add(time.Hour)
	b := open(t, Requirement{
		Quorums: []Quorum{named("ops", of(1, "bo")), in(2, "sre", "ops")}, Vetoes: []Quorum{of(1, "ciso")},
		Separation: true, Delegation: true,
	})
	d := say(b, "bo", Approve, "sre", "zoo")
	d.By.For = []Absent{
		{User: "sid", Groups: []GroupID{"zoo", "sre"}, Until: soon.Add(time.Minute)},
		{User: "out", Groups: []GroupID{"zoo"}, Until: soon},
		{User: "ann", Groups: []GroupID{"sre", "ops", "sre"}, Until: soon.In(time.FixedZone("", 3600))},
		{User: "back", Groups: []GroupID{"sre"}, Until: d.At},
		{User: "ever", Groups: []GroupID{"sre"}},
		{User: "req", Groups: []GroupID{"sre"}, Until: soon},
		{User: "bo", Groups: []GroupID{"sre"}, Until: soon},
		{User: "ciso", Until: soon},
		{User: "sid", Groups: []GroupID{"ops"}, Until: soon},
	}
	want := []Absent{
		{User: "ann", Groups: []GroupID{"ops", "sre"}, Until: soon},
		{User: "ciso", Until: soon},
		{User: "sid", Groups: []GroupID{"ops", "sre"}, Until: soon.Add(time.Minute)},
	}
	next, events, err := b.Apply(d)
	require.NoError(t, err)
	require.Equal(t, want, next.Approvals[0].Decisions[0].By.For)
	require.Equal(t, want, events[0].(Decided).By.For)
	events[0].(Decided).By.For[0].Groups[0] = "x"
	require.Equal(t, want, next.Approvals[0].Decisions[0].By.For, "the fact shares no memory with the batch")

	// ann is used once: bo fills a place for her, and then moves to his own.
	require.Equal(t, []string{"ops* [bo]", "* []"}, lines(next.Approvals[0]))
	cy := say(b, "cy", Approve)
	cy.By.For = []Absent{{User: "ann", Groups: []GroupID{"sre"}, Until: soon}}
	next = must(t, next, cy)
	require.Equal(t, []string{"ops* [bo]", "* [cy for ann]"}, lines(next.Approvals[0]))
	next = must(t, next, say(b, "ann", Approve, "sre"))
	require.Equal(t, Pending, next.Approvals[0].Status, "cy signed in her place already")
	require.Equal(t, []string{"ops* [bo]", "* [cy for ann]"}, lines(next.Approvals[0]))
	next = must(t, next, say(b, "sam", Approve, "sre"))
	require.Equal(t, Approved, next.Approvals[0].Status)

	b.Approvals[0].Requirement.Delegation = false
	_, _, err = b.Apply(cy)
	require.ErrorIs(t, err, ErrNotEligible)
	next = must(t, b, d)
	require.Empty(t, next.Approvals[0].Decisions[0].By.For)
}

func TestADelegateMayEditAndThenNotSign(t *testing.T) {
	b := open(t, Requirement{Quorums: []Quorum{of(1, "ann", "dee")}, Delegation: true})
	bo := Principal{User: "bo", For: []Absent{{User: "ann", Until: opened.Add(time.Hour)}}}
	edit := Amend{Call: theCall, From: b.Approvals[0].Call.Digest, Args: []byte(`{}`), Ruling: Permit{}, By: bo, At: opened}
	b = must(t, b, edit)
	require.Equal(t, bo, b.Approvals[0].Amendments[0].By)
	d := say(b, "bo", Approve)
	d.By = bo
	_, _, err := b.Apply(d)
	require.ErrorIs(t, err, ErrOwnEdit)
	d = say(b, "cy", Approve) // nor does anyone sign for the editor
	d.By.For = []Absent{{User: "bo", Until: opened.Add(time.Hour)}}
	_, _, err = b.Apply(d)
	require.ErrorIs(t, err, ErrNotEligible)

	b = must(t, b, say(b, "dee", Approve))
	require.Equal(t, Approved, b.Approvals[0].Status)
}

func BenchmarkAClickOnABatchOf500(b *testing.B) {
	r := Requirement{
		Quorums: []Quorum{in(2, "sre"), choice(1, 0, in(1, "security")), choice(1, 1, in(2, "leads")), later(of(1, "boss"))},
		Vetoes:  []Quorum{in(1, "security")}, Delegation: true,
	}
	var calls []Deferral
	for i := range 500 {
		calls = append(calls, Deferral{Call: ToolCall{ID: ToolCallID(fmt.Sprint("c", i)), Name: "x"}, Ask: Ask{Requirement: r}})
	}
	batch, _, err := Open(Batch{ID: "b", Run: "r", OpenedAt: opened}, calls, nil)
	if err != nil {
		b.Fatal(err)
	}
	d := Decide{Decision{
		Call: "c250", Verdict: Approve, Digest: batch.Approvals[250].Call.Digest, At: opened,
		By: Principal{User: "bo", Groups: []GroupID{"sre"}, For: []Absent{{User: "ann", Groups: []GroupID{"leads"}, Until: deadline}}},
	}}
	for b.Loop() {
		if _, _, err := batch.Apply(d); err != nil {
			b.Fatal(err)
		}
	}
}

// The rules of several calls can name more people together than one commit of a batch takes
// everywhere. Opening it says so; otherwise the store would refuse the commit, and each
// attempt to repeat it.
func TestABatchNamesNoMorePeopleThanACommitTakes(t *testing.T) {
	people := func(from, to int) (all []UserID) {
		for n := from; n < to; n++ {
			all = append(all, UserID(fmt.Sprint("u", n)))
		}
		return all
	}
	half := MaxNamed / 2
	opens := func(second Requirement) error {
		_, _, err := Open(Batch{ID: "b", Run: "r", OpenedAt: opened}, []Deferral{
			{Call: ToolCall{ID: "c1", Name: "x"}, Ask: Ask{Requirement: all(of(1, people(0, half)...))}},
			{Call: ToolCall{ID: "c2", Name: "x"}, Ask: Ask{Requirement: second}},
		}, nil)
		return err
	}
	require.NoError(t, opens(all(of(1, people(half, MaxNamed)...))))
	require.NoError(t, opens(all(of(1, people(0, MaxNamed)...))), "each counts once")
	require.ErrorIs(t, opens(all(of(1, people(half, MaxNamed+1)...))), ErrInvalid)
	require.ErrorIs(t, opens(all(of(1, people(half, MaxNamed)...), in(1, "sre"))), ErrInvalid, "a group is one more")
	require.ErrorIs(t, opens(Requirement{Vetoes: []Quorum{of(1, people(half, MaxNamed+1)...)}}), ErrInvalid)
	require.ErrorContains(t, opens(Requirement{
		Quorums: []Quorum{named("ops", of(1, people(half, MaxNamed)...))},
		Ladder:  []Rung{{At: opened.Add(time.Hour), Kind: Escalate, Quorum: "ops", Add: From{Users: []UserID{"late"}}}},
	}), fmt.Sprintf("asks %d people and groups", MaxNamed+1))

	b := open(t, all(of(1, people(0, half)...)))
	must(t, b, amends(b, "req", 1, Ask{Requirement: all(of(1, people(half, MaxNamed)...))}))
	_, _, err := b.Apply(amends(b, "req", 1, Ask{Requirement: all(of(1, people(half, MaxNamed+1)...))}))
	require.ErrorIs(t, err, ErrInvalid, "an edit leaves the lists of all before and joins those of all after")
}
