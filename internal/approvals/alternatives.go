package approvals

import (
	"fmt"
	"slices"
)

// MaxWays is in how many ways a requirement may be met: each combination of the
// options of its choices is one.
const MaxWays = 64

// ways lists the ways to meet the requirement, each as the indexes of the
// quorums that it needs together. Without quorums there is none. With too many
// there is none either, so that such a requirement is never met.
func (r Requirement) ways() ([][]int, error) {
	if len(r.Quorums) == 0 {
		return nil, nil
	}
	ways := [][]int{nil}
	var chosen []int
	for i, q := range r.Quorums {
		if q.Choice == 0 {
			for w := range ways {
				ways[w] = append(ways[w], i)
			}
			continue
		}
		if slices.Contains(chosen, q.Choice) {
			continue
		}
		chosen = append(chosen, q.Choice)
		options := r.options(q.Choice)
		if len(ways)*len(options) > MaxWays {
			return nil, fmt.Errorf("%w: there are more than %d ways to meet the requirement", ErrInvalid, MaxWays)
		}
		var more [][]int
		for _, way := range ways {
			for _, option := range options {
				more = append(more, slices.Concat(way, option))
			}
		}
		ways = more
	}
	return ways, nil
}

// options lists the options of a choice, each as the indexes of its quorums.
func (r Requirement) options(choice int) [][]int {
	var names []int
	var options [][]int
	for i, q := range r.Quorums {
		if q.Choice != choice {
			continue
		}
		o := slices.Index(names, q.Option)
		if o < 0 {
			o = len(names)
			names, options = append(names, q.Option), append(options, nil)
		}
		options[o] = append(options[o], i)
	}
	return options
}

// met reports whether these different people fill every place of every quorum
// of a way, each of them one. No quorums are never met, nor is one that needs
// nobody.
func (r Requirement) met(people []Principal) bool {
	ways, err := r.ways()
	if err != nil {
		return false
	}
	var p *poll
	for _, way := range ways {
		if !r.enough(way, len(people)) {
			continue
		}
		if p == nil {
			p = newPoll(r.Quorums, people)
		}
		if missing, _ := p.newMatching(way).missing(); missing == 0 {
			return true
		}
	}
	return false
}

// enough reports whether so many people could meet a way.
func (r Requirement) enough(way []int, people int) bool {
	for _, i := range way {
		need := r.Quorums[i].Need
		if need < 1 || need > people {
			return false
		}
		people -= need
	}
	return true
}

// A standing is how far every way of a requirement is.
type standing struct {
	ways []*matching
	open int // the stage that is asked; those before are met
}

func (r Requirement) standing(people []Principal) standing {
	ways, err := r.ways()
	if err != nil {
		return standing{}
	}
	var s standing
	p := newPoll(r.Quorums, people)
	for i, way := range ways {
		m := p.newMatching(way)
		s.ways = append(s.ways, m)
		stage, unmet := m.open()
		if !unmet {
			stage = maxStage
		}
		if i == 0 || stage > s.open {
			s.open = stage
		}
	}
	return s
}

const maxStage = int(^uint(0) >> 1)

// taken returns who fills the places of the first way that is met, if one is.
func (s standing) taken() []Seat {
	for _, m := range s.ways {
		if missing, fillable := m.missing(); missing > 0 || !fillable {
			continue
		}
		var seats []Seat
		for _, q := range m.way {
			seats = append(seats, m.seated(q)...)
		}
		return seats
	}
	return nil
}

// short returns the quorums that are not complete, of the ways that need no more of
// them than another way does.
func (s standing) short() []int {
	missing := make([][]int, len(s.ways))
	for i, m := range s.ways {
		for _, q := range m.way {
			if len(m.seated(q)) < m.quorums[q].Need {
				missing[i] = append(missing[i], q)
			}
		}
	}
	var all []int
	for _, these := range missing {
		within := func(less []int) bool {
			return len(less) < len(these) && !slices.ContainsFunc(less, func(q int) bool { return !slices.Contains(these, q) })
		}
		if !slices.ContainsFunc(missing, within) {
			all = append(all, these...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// best returns the way that contains quorum q and has the fewest places
// missing, one that can be filled before one that cannot.
func (s standing) best(q int) *matching {
	var best *matching
	fewest, able := 0, false
	for _, m := range s.ways {
		if !slices.Contains(m.way, q) {
			continue
		}
		missing, fillable := m.missing()
		if best == nil || fillable && !able || fillable == able && missing < fewest {
			best, fewest, able = m, missing, fillable
		}
	}
	return best
}
