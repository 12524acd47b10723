package approvals

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// MaxNamed is how many people and groups the requirements of a batch may name together,
// with their escalations. The batch is on a list of each, and one commit puts it there:
// some services that host Redis reject larger commits, on every retry. Calls in doubt do
// not count: they were stored before, and people must be asked about them.
const MaxNamed = 500

// checkNamed refuses a batch whose requirements, and these others, name too many, with
// a [TooManyNamedError].
func (b Batch) checkNamed(others ...Requirement) error {
	for _, a := range b.Approvals {
		if a.Doubt.Began.IsZero() {
			others = append(others, a.Requirement)
		}
	}
	named := map[ListKey]bool{}
	add := func(f From) {
		for _, u := range f.Users {
			named[WaitsForUser(u)] = true
		}
		for _, g := range f.Groups {
			named[WaitsForGroup(g)] = true
		}
	}
	for _, r := range others {
		for _, q := range slices.Concat(r.Quorums, r.Vetoes) {
			add(q.From)
		}
		for _, rung := range r.Ladder {
			add(rung.Add)
		}
	}
	if len(named) > MaxNamed {
		return &TooManyNamedError{Named: len(named)}
	}
	return nil
}

// checkRequirement refuses what could not be followed as it is written: a
// separation that would separate nobody, more than [MaxWays] ways, a choice
// whose quorums are in different stages, two quorums of one name, and a ladder
// that is out of order or names what is not there. A requirement that nobody
// can meet is not refused; it is never met.
func (b Batch) checkRequirement(r Requirement) error {
	if r.Separation && b.Requester == "" {
		return fmt.Errorf("%w: separation needs to know who asked", ErrInvalid)
	}
	if err := checkNames(r.Quorums); err != nil {
		return err
	}
	if err := checkNames(r.Vetoes); err != nil {
		return err
	}
	stages := map[int]int{}
	for _, q := range r.Quorums {
		if stage, ok := stages[q.Choice]; ok && q.Choice != 0 && stage != q.Stage {
			return fmt.Errorf("%w: the alternatives of choice %d are in different stages", ErrInvalid, q.Choice)
		}
		stages[q.Choice] = q.Stage
	}
	if _, err := r.ways(); err != nil {
		return err
	}
	var last time.Time
	for i, rung := range r.Ladder {
		if rung.At.IsZero() || rung.At.Before(last) {
			return fmt.Errorf("%w: rung %d of the ladder has no time, or comes before the one above it", ErrInvalid, i+1)
		}
		if err := r.checkRung(rung); err != nil {
			return fmt.Errorf("rung %d of the ladder: %w", i+1, err)
		}
		last = rung.At
	}
	return nil
}

// checkNames refuses two quorums of one name; any number may have none.
func checkNames(quorums []Quorum) error {
	seen := map[string]bool{"": false}
	for _, q := range quorums {
		if seen[q.Name] {
			return fmt.Errorf("%w: two quorums are named %q", ErrInvalid, q.Name)
		}
		seen[q.Name] = q.Name != ""
	}
	return nil
}

func (r Requirement) checkRung(rung Rung) error {
	adds := !rung.Add.Empty()
	switch rung.Kind {
	case Remind:
		if rung.Quorum != "" || adds || rung.Channel != "" {
			return fmt.Errorf("%w: a reminder changes nothing", ErrInvalid)
		}
		return nil
	case Escalate:
		switch {
		case !adds && rung.Channel == "":
			return fmt.Errorf("%w: an escalation adds people or names a channel", ErrInvalid)
		case adds && rung.Quorum == "", rung.Quorum != "" && r.named(rung.Quorum) < 0:
			return fmt.Errorf("%w: an escalation of the quorum %q, which is not there", ErrInvalid, rung.Quorum)
		}
		return nil
	}
	return fmt.Errorf("%w: a rung cannot %q", ErrInvalid, string(rung.Kind))
}

// named returns the index of the quorum of this name, or -1.
func (r Requirement) named(name string) int {
	return slices.IndexFunc(r.Quorums, func(q Quorum) bool { return q.Name == name })
}

// NamesNobody reports whether no quorum names anyone, nor will one with an escalation.
func (r Requirement) NamesNobody() bool {
	names := func(q Quorum) bool { return !q.From.Empty() }
	adds := func(rung Rung) bool { return !rung.Add.Empty() }
	return !slices.ContainsFunc(r.Quorums, names) && !slices.ContainsFunc(r.Ladder, adds)
}

// admits reports whether p, or someone p approves for, is in one of the quorums.
func admits(quorums []Quorum, p Principal) bool {
	return slices.ContainsFunc(quorums, func(q Quorum) bool {
		return q.From.Admits(p) || slices.ContainsFunc(p.For, func(a Absent) bool { return q.From.Admits(a.principal()) })
	})
}

// groups returns the groups that occur in the quorums and vetoes, sorted, each
// once.
func (r Requirement) groups() []GroupID {
	var all []GroupID
	for _, quorums := range [][]Quorum{r.Quorums, r.Vetoes} {
		for _, q := range quorums {
			all = append(all, q.From.Groups...)
		}
	}
	return sorted(slices.DeleteFunc(all, func(g GroupID) bool { return g == "" }))
}

// record returns p as it is stored with what they did: with those of their
// groups that the requirement names, and with those people away who are in a
// quorum or veto of it; sorted, each once.
func (r Requirement) record(p Principal) Principal {
	named := r.groups()
	known := func(groups []GroupID) []GroupID {
		return sorted(slices.DeleteFunc(slices.Clone(groups), func(g GroupID) bool {
			_, ok := slices.BinarySearch(named, g)
			return !ok
		}))
	}
	var away []Absent
	for _, a := range p.For {
		a = Absent{User: a.User, Groups: known(a.Groups), Until: plain(a.Until), Via: union(nil, a.Via)}
		if who := a.principal(); !admits(r.Quorums, who) && !admits(r.Vetoes, who) {
			continue
		}
		i := slices.IndexFunc(away, func(b Absent) bool { return b.User == a.User })
		if i < 0 {
			away = append(away, a)
			continue
		}
		away[i].Groups = sorted(append(away[i].Groups, a.Groups...))
		away[i].Via = union(away[i].Via, a.Via)
		if a.Until.After(away[i].Until) {
			away[i].Until = a.Until
		}
	}
	slices.SortFunc(away, func(a, b Absent) int { return cmp.Compare(a.User, b.User) })
	return Principal{User: p.User, Groups: known(p.Groups), GroupsAt: plain(p.GroupsAt), For: away}
}

// clone returns a copy that shares no memory with r, with its times as they
// are stored.
func (r Requirement) clone() Requirement {
	r.Quorums, r.Vetoes = cloneQuorums(r.Quorums), cloneQuorums(r.Vetoes)
	r.Ladder = slices.Clone(r.Ladder)
	for i := range r.Ladder {
		rung := &r.Ladder[i]
		rung.At, rung.Add = plain(rung.At), rung.Add.clone()
	}
	if !r.Deadline.IsZero() {
		r.Deadline = plain(r.Deadline)
	}
	return r
}

func cloneQuorums(quorums []Quorum) []Quorum {
	quorums = slices.Clone(quorums)
	for i := range quorums {
		quorums[i].From = quorums[i].From.clone()
	}
	return quorums
}

func (f From) clone() From {
	return From{Users: slices.Clone(f.Users), Groups: slices.Clone(f.Groups)}
}

// sorted sorts in place and leaves each once; nothing is nil.
func sorted[T ~string](all []T) []T {
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	return slices.Compact(all)
}
