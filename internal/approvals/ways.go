package approvals

import (
	"fmt"
	"slices"
	"time"
)

// MaxWays is in how many ways a requirement may be met: each combination of the
// options of its choices is one.
const MaxWays = 64

// ways lists the ways to meet the requirement, each as the indexes of the
// quorums that it needs together. Without quorums there is none; with too many
// there is none either, so that what slipped through is never met.
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

// Progress is how far a quorum is: who fills its places, and whether it is
// being asked: those of a later stage are not yet.
type Progress struct {
	Quorum Quorum
	By     []Seat
	Asked  bool
}

// A Seat is a filled place of a quorum. For is the person who is away in whose
// place User signed, or empty.
type Seat struct {
	User UserID
	For  UserID
}

func (s Seat) String() string {
	if s.For == "" {
		return string(s.User)
	}
	return string(s.User) + " for " + string(s.For)
}

// Progress says how far each quorum of the approval is, counting each person
// once over all that are needed together. Who has signed is listed in the
// order of signing. A quorum is counted in the way that has the fewest places
// missing, an alternative in the best of the ways that contain it: so a person
// may be counted for two alternatives, of which only one is taken.
func (a Approval) Progress() []Progress {
	// Who is barred has no decision, and is not recorded with one.
	s := a.Requirement.standing(a.voices(Approve, func(UserID) bool { return false }))
	quorums := a.Requirement.clone().Quorums
	progress := make([]Progress, len(quorums))
	for i, q := range quorums {
		progress[i] = Progress{Quorum: q}
		if m := s.best(i); m != nil {
			progress[i].By = m.seated(i)
			progress[i].Asked = q.Stage <= s.open
		}
	}
	return progress
}

// Helps reports whether an approval by p would bring an open call further: p
// may sign it, has not decided, and fills a place of a quorum that is asked, in
// a way that can be met. Who is in p.For is away, or was left out by the caller:
// no time is known here. It is for deciding whom to ask, remind and show; whose
// signature counts is decided by [Batch.Apply].
func (b Batch) Helps(a Approval, p Principal) bool {
	if a.Status != Pending || a.decisionOf(p.User) >= 0 {
		return false
	}
	p = a.Requirement.record(a.voice(p, time.Time{}, b.bars(a, Approve)))
	if b.maySign(a, p, Approve) != nil {
		return false
	}
	r, people := a.Requirement, b.counted(a, Approve)
	now, then := r.standing(people), r.standing(append(people, p))
	for i, way := range then.ways {
		if _, fillable := way.missing(); fillable && way.filled(now.open) > now.ways[i].filled(now.open) {
			return true
		}
	}
	return false
}

// Suffices reports whether an open call would be approved if all these people,
// who are not away for others, approved it besides those who did. Who has decided
// is not heard again. It is for telling people that nobody is left who could.
func (b Batch) Suffices(a Approval, all []Principal) bool {
	yes := b.counted(a, Approve)
	for _, p := range all {
		p.For = nil
		if a.decisionOf(p.User) < 0 && b.maySign(a, p, Approve) == nil {
			yes = append(yes, a.Requirement.record(p))
		}
	}
	return a.Status == Pending && a.Requirement.met(yes)
}
