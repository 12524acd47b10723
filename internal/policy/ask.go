package policy

import (
	"cmp"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

// An ask is a requirement before it is known for which call.
type ask struct {
	strictyaml.Mark
	why       string
	severity  approvals.Severity
	quorums   []quorum
	vetoes    []quorum
	denials   int
	denialsAt strictyaml.Mark
	within    time.Duration
	claim     time.Duration // that a decision waits for a remote agent; 0 for the default of the core
	hours     *calendar
	rungs     []rung
	fragile   truth

	separation, participants, editor, delegates, reason bool
	dm                                                  approvals.DirectMessages
}

type rung struct {
	after   time.Duration
	kind    approvals.RungKind
	quorum  string
	add     from
	channel string
	mark    strictyaml.Mark
}

// requirement returns what the call needs. It is an error if that depends on a
// person who is not known.
func (a *ask) requirement(q approvals.Proposal, n *names) (approvals.Requirement, error) {
	r := approvals.Requirement{
		Quorums: make([]approvals.Quorum, len(a.quorums)), Deny: a.denials,
		Separation: a.separation, ParticipantsMaySign: a.participants, EditorMaySign: a.editor, Delegation: a.delegates, ReasonNeeded: a.reason, Direct: a.dm,
		Deadline: a.hours.add(q.At, a.within), ClaimWithin: a.claim,
	}
	var err error
	for i, of := range a.quorums {
		r.Quorums[i] = of.Quorum
		if r.Quorums[i].From, err = of.from.of(q, n); err != nil {
			return approvals.Requirement{}, err
		}
	}
	for _, of := range a.vetoes {
		veto := of.Quorum
		if veto.From, err = of.from.of(q, n); err != nil {
			return approvals.Requirement{}, err
		}
		r.Vetoes = append(r.Vetoes, veto)
	}
	for _, s := range a.rungs {
		step := approvals.Rung{At: a.hours.add(q.At, s.after), Kind: s.kind, Quorum: s.quorum, Channel: s.channel}
		if step.Add, err = s.add.of(q, n); err != nil {
			return approvals.Requirement{}, err
		}
		r.Ladder = append(r.Ladder, step)
	}
	return r, nil
}

// of returns who that is for this call. The result shares no memory with the
// policy.
func (f from) of(q approvals.Proposal, n *names) (approvals.From, error) {
	who := approvals.From{Users: slices.Clone(f.Users), Groups: slices.Clone(f.Groups)}
	if f.manager {
		boss := n.managers[q.Requester]
		if boss == "" {
			return approvals.From{}, errNoManager
		}
		if !slices.Contains(who.Users, boss) {
			who.Users = append(who.Users, boss)
		}
	}
	if f.here {
		if !channelID.MatchString(q.Channel) {
			return approvals.From{}, errNoChannel
		}
		if id := approvals.GroupID(q.Channel); !slices.Contains(who.Groups, id) {
			who.Groups = append(who.Groups, id)
		}
	}
	return who, nil
}

// maxWays is how many ways there may be to meet a requirement; the batch
// refuses more.
const maxWays = 64

// maxNamed is how many people and groups an ask may name. A request is on a list of each,
// and some services that host Redis take no commit of a request that names many more.
const maxNamed = 400

// namedBy counts the people and groups that the asks name, also those of escalations.
func namedBy(asks ...*ask) int {
	all := map[string]bool{}
	add := func(who approvals.From) {
		for _, u := range who.Users {
			all["person "+string(u)] = true
		}
		for _, g := range who.Groups {
			all["group "+string(g)] = true
		}
	}
	for _, a := range asks {
		for _, q := range slices.Concat(a.quorums, a.vetoes) {
			add(q.from.From)
		}
		for _, r := range a.rungs {
			add(r.add.From)
		}
	}
	return len(all)
}

// newAsk reads an ask. Of within, claim_within and hours it takes each that it leaves out from
// fallback, which is nil for the default itself; one that names no quorums is
// the fallback with other words.
func newAsk(f *askForm, n *names, fallback *ask) *ask {
	a := &ask{Mark: f.Mark, why: f.Why.Value, severity: newSeverity(f.Severity, n)}
	if !f.Quorums.Written() {
		if fallback == nil {
			n.Wrong(f.Key("quorums"), "is missing; nobody could ever approve")
			return a
		}
		if other := f.others(); other != "" {
			n.Wrong(f.Key(other), "has no effect without quorums; add quorums, or remove the key to ask as default does")
		}
		same := *fallback
		same.why, same.severity, same.Mark = cmp.Or(f.Why.Value, fallback.why), cmp.Or(a.severity, fallback.severity), f.Mark
		return &same
	}
	a.quorums = newQuorums(f.Quorums.Items, n)
	a.denials, a.denialsAt = 1, f.Mark
	if f.Denials.Written() {
		if a.denials, a.denialsAt = f.Denials.Value, f.Denials.Mark; a.denials < 1 {
			n.Wrong(f.Denials.Mark, "is %d, must be 1 or more", a.denials)
		}
	}
	a.vetoes = newPlain(f.Veto.Items, n)
	a.times(f, n, fallback)
	a.separation, a.editor, a.delegates, a.fragile = !f.RequesterMayApprove.Value, f.EditorMayApprove.Value, f.Delegates.Value, f.Fragile
	a.participants, a.dm = f.Participants.Value, newDirect(f.DM)
	if f.Participants.Written() && f.RequesterMayApprove.Value {
		n.Wrong(f.Participants.Mark, "has no effect with requester_may_approve: true, which already lets participants approve; remove one of them")
	}
	switch f.Reason.Value {
	case "", "optional":
	case "required":
		a.reason = true
	default:
		n.Wrong(f.Reason.Mark, "is %q, must be optional or required", f.Reason.Value)
	}
	unique(a.quorums, n)
	unique(a.vetoes, n)
	if len(a.ways()) > maxWays {
		n.Wrong(f.Quorums.Mark, "can be met in more than %d ways; remove some alternatives", maxWays)
	}
	a.ladder(f, n)
	if count := namedBy(a); count > maxNamed {
		n.Wrong(f.Mark, "names %d people and groups, and at most %d are allowed; name a group of people instead", count, maxNamed)
	}
	return a
}

// newSeverity reads what an ask states, which may be nothing.
func newSeverity(f text, n *names) approvals.Severity {
	if f.Value == "" {
		return approvals.SeverityUnset // an empty value was reported when it was decoded
	}
	s, err := approvals.ParseSeverity(f.Value)
	if err != nil {
		n.Wrong(f.Mark, "is %q, must be low, high or irreversible", f.Value)
	}
	return s
}

// newDirect reads whom direct messages ask. Left out is not the same as false.
func newDirect(f truth) approvals.DirectMessages {
	switch {
	case !f.Written():
		return approvals.DirectOutside
	case f.Value:
		return approvals.DirectEveryone
	}
	return approvals.DirectNobody
}

// others is a key that means nothing without quorums.
func (f *askForm) others() string {
	for key, set := range map[string]bool{
		"denials": f.Denials.Written(), "veto": f.Veto.Written(), "within": f.Within.Written(), "hours": f.Hours.Written(), "remind": f.Remind.Written(),
		"escalate": f.Escalate.Written(), "requester_may_approve": f.RequesterMayApprove.Written(), "editor_may_approve": f.EditorMayApprove.Written(),
		"participants_may_approve": f.Participants.Written(), "claim_within": f.ClaimWithin.Written(),
		"delegates": f.Delegates.Written(), "reason": f.Reason.Written(), "dm": f.DM.Written(), "fragile": f.Fragile.Written(),
	} {
		if set {
			return key
		}
	}
	return ""
}

func (a *ask) times(f *askForm, n *names, fallback *ask) {
	a.within = DefaultWithin
	switch {
	case f.Within.Written():
		a.within = f.Within.d
	case fallback != nil:
		a.within = fallback.within
	}
	switch {
	case f.ClaimWithin.Written():
		a.claim = f.ClaimWithin.d
	case fallback != nil:
		a.claim = fallback.claim
	}
	switch {
	case f.Hours.Written():
		c, ok := n.calendars[f.Hours.Value]
		if !ok {
			unknown(n, f.Hours, "calendar", "calendars", n.calendars)
		}
		a.hours = c
	case fallback != nil:
		a.hours = fallback.hours
	}
	if at := cmp.Or(f.Within.Mark, f.Hours.Mark); (f.Within.Written() || f.Hours.Written()) && a.hours != nil && a.within > a.hours.decade() {
		n.Wrong(at, "the calendar does not have %s within ten years, so every request would expire at once; write a shorter time", hours(a.within))
	}
}

func (a *ask) ladder(f *askForm, n *names) {
	late := func(at strictyaml.Mark, d time.Duration) {
		if d >= a.within && a.within > 0 {
			n.Wrong(at, "comes after %s, but the deadline is after %s", hours(d), hours(a.within))
		}
	}
	for i, s := range f.Remind.Items {
		late(s.Mark, s.d)
		if i > 0 && s.d > 0 && s.d <= f.Remind.Items[i-1].d {
			n.Wrong(s.Mark, "must be later than the one before it")
		}
		a.rungs = append(a.rungs, rung{after: s.d, kind: approvals.Remind, mark: s.Mark})
	}
	for _, e := range f.Escalate.Items {
		if !e.After.Written() {
			n.Wrong(e.Key("after"), "is missing; write a duration such as 2h")
		}
		late(e.After.Mark, e.After.d)
		r := rung{after: e.After.d, kind: approvals.Escalate, quorum: e.Quorum.Value, mark: e.Mark}
		if e.Channel.Written() {
			if id, ok := n.group(e.Channel, true); ok {
				r.channel = string(id)
			}
		}
		a.widen(e, &r, n)
		a.rungs = append(a.rungs, r)
	}
	slices.SortStableFunc(a.rungs, func(x, y rung) int { return cmp.Compare(x.after, y.after) })
}

func (a *ask) widen(e escalateForm, r *rung, n *names) {
	i := slices.IndexFunc(a.quorums, func(q quorum) bool { return q.Name == e.Quorum.Value })
	if e.Quorum.Written() && i < 0 && e.Quorum.Value != "" {
		var known []string
		for _, q := range a.quorums {
			known = append(known, q.Name)
		}
		n.Wrong(e.Quorum.Mark, "there is no quorum %q here%s", e.Quorum.Value, strictyaml.Hint(e.Quorum.Value, known))
	}
	switch {
	case e.Add == nil && !e.Channel.Written():
		n.Wrong(e.Mark, "has no effect; add people, or name a channel")
	case e.Add != nil && !e.Quorum.Written():
		n.Wrong(e.Add.Mark, "needs a quorum; name the quorum that these people join")
	case e.Add == nil && e.Quorum.Written():
		n.Wrong(e.Quorum.Mark, "has no people to add; write add")
	case e.Add != nil:
		before := n.Count()
		r.add = n.from(e.Add, e.Mark)
		if i < 0 || n.Count() > before {
			return
		}
		if of := a.quorums[i].from; within(r.add, of) {
			n.Wrong(e.Add.Mark, "adds no one new to %s", e.Quorum.Value)
		}
	}
}

// within reports whether everyone of f is named in g.
func within(f, g from) bool {
	return (!f.manager || g.manager) && (!f.here || g.here) &&
		!slices.ContainsFunc(f.Users, func(u approvals.UserID) bool { return !slices.Contains(g.Users, u) }) &&
		!slices.ContainsFunc(f.Groups, func(id approvals.GroupID) bool { return !slices.Contains(g.Groups, id) })
}
