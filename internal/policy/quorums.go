package policy

import (
	"fmt"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/strictyaml"
)

type quorum struct {
	approvals.Quorum // without From
	from             from
	mark             strictyaml.Mark
}

func newQuorums(items []quorumForm, n *names) []quorum {
	var all []quorum
	choice := 0
	for _, f := range items {
		if !f.Any.Written() {
			q := newQuorum(plainQuorum{f.Mark, f.Name, f.Need, f.From}, n)
			q.Stage = f.stage(n)
			all = append(all, q)
			continue
		}
		choice++
		for key, at := range map[string]strictyaml.Mark{"name": f.Name.Mark, "need": f.Need.Mark} {
			if at.Written() {
				n.Wrong(at, "%s is for a quorum, and this is a choice; write it in the alternatives", key)
			}
		}
		if f.From != nil {
			n.Wrong(f.From.Mark, "from is for a quorum, and this is a choice; write it in the alternatives")
		}
		if len(f.Any.Items) == 1 {
			n.Wrong(f.Any.Mark, "has only one alternative; write it as a plain quorum, or add another")
		}
		for i, o := range f.Any.Items {
			for _, q := range o.quorums(n) {
				q.Choice, q.Option, q.Stage = choice, i+1, f.stage(nil)
				all = append(all, q)
			}
		}
		f.stage(n)
	}
	return all
}

// stage is 1 if it is left out. Without names nothing is said.
func (f quorumForm) stage(n *names) int {
	if !f.Stage.Written() {
		return 1
	}
	if n != nil && (f.Stage.Value < 1 || f.Stage.Value > 100) {
		n.Wrong(f.Stage.Mark, "is %d, must be between 1 and 100", f.Stage.Value)
	}
	return f.Stage.Value
}

func (o optionForm) quorums(n *names) []quorum {
	if !o.All.Written() {
		return []quorum{newQuorum(plainQuorum{o.Mark, o.Name, o.Need, o.From}, n)}
	}
	if o.Name.Written() || o.Need.Written() || o.From != nil {
		n.Wrong(o.Mark, "must be a quorum or a list under all, not both")
	}
	return newPlain(o.All.Items, n)
}

func newPlain(items []plainQuorum, n *names) []quorum {
	var all []quorum
	for _, f := range items {
		all = append(all, newQuorum(f, n))
	}
	return all
}

func newQuorum(f plainQuorum, n *names) quorum {
	q := quorum{mark: f.Mark, from: n.from(f.From, f.Mark), Quorum: approvals.Quorum{Name: f.Name.Value, Need: 1}}
	if !f.Name.Written() {
		n.Wrong(f.Key("name"), "is missing; approvers read it")
	}
	if f.Need.Written() {
		if q.Need = f.Need.Value; q.Need < 1 {
			n.Wrong(f.Need.Mark, "is %d, must be 1 or more", q.Need)
		}
	}
	return q
}

func unique(quorums []quorum, n *names) {
	for i, q := range quorums {
		if q.Name != "" && slices.ContainsFunc(quorums[:i], func(o quorum) bool { return o.Name == q.Name }) {
			n.Wrong(q.mark, "another quorum is already called %s; approvers could not tell them apart", q.Name)
		}
	}
}

// ways returns the quorums of every way to meet the ask, at most one more than
// are allowed.
func (a *ask) ways() [][]quorum {
	ways := [][]quorum{nil}
	last := 0
	for _, q := range a.quorums {
		last = max(last, q.Choice)
	}
	for choice := range last + 1 {
		options := map[int][]quorum{}
		order := []int{}
		for _, q := range a.quorums {
			if q.Choice == choice {
				if options[q.Option] == nil {
					order = append(order, q.Option)
				}
				options[q.Option] = append(options[q.Option], q)
			}
		}
		if len(order) == 0 {
			continue
		}
		var next [][]quorum
		for _, way := range ways {
			for _, o := range order {
				if len(next) > maxWays {
					return next
				}
				next = append(next, append(slices.Clone(way), options[o]...))
			}
		}
		ways = next
	}
	return ways
}

// places says a quorum in words: 2 of sre.
func (q quorum) places(n *names) string {
	who := n.say(q.from.From)
	switch {
	case q.from.manager && who == "nobody":
		who = "the requester's manager"
	case q.from.manager:
		who += ", the requester's manager"
	case q.from.here && who == "nobody":
		who = "the channel"
	case q.from.here:
		who += ", the channel"
	}
	return fmt.Sprintf("%d of %s", q.Need, who)
}
