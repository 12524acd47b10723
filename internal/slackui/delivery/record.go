package delivery

import (
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
)

// anchors is the memo of the cards of a batch. Missed are the channels in which an
// escalation could not show it: nothing new is posted there, and messages that are there
// are updated when the batch changes, if Slack permits that by then.
type anchors struct {
	Anchors    []Anchor      `json:"anchors"`
	Placements []Placement   `json:"rooms,omitempty"`
	Listed     bool          `json:"listed,omitempty"` // its thread says that a digest lists it
	Waits      int64         `json:"waits,omitempty"`  // the version of which all is shown that needs no digest and no lookup
	Sought     time.Time     `json:"sought,omitzero"`  // when it was looked up whom that version asks, if that failed
	Missed     []card.Missed `json:"missed,omitempty"`

	Unreached []approvals.UserID `json:"unreached,omitempty"` // people who take no direct message
	Unasked   []card.Unasked     `json:"unasked,omitempty"`   // calls that nobody could be asked about
	Told      []int              `json:"told,omitempty"`      // those that the requester was told about

	ToldEach map[approvals.UserID][]int `json:"told_each,omitempty"` // which of them each of several was told about
}

// An Anchor is one message that shows a part of a batch.
type Anchor struct {
	Part    int    `json:"part"`
	Channel string `json:"channel"`
	TS      string `json:"ts"`
	Thread  string `json:"thread,omitempty"`
	Version int64  `json:"version"`         // of the batch that it shows
	Sum     string `json:"sum,omitempty"`   // of its content
	Whole   bool   `json:"whole,omitempty"` // it waits, and shows everything of its calls
	Copy    bool   `json:"copy,omitempty"`
	Further bool   `json:"further,omitempty"` // in the channel of an escalation

	Direct approvals.UserID `json:"direct,omitempty"` // in the direct messages to this person
}

// withSomebodyElse reports whether the message is in direct messages that the person is not
// in, so that no link leads them there.
func (a Anchor) withSomebodyElse(b approvals.Batch, person approvals.UserID) bool {
	return a.Direct != person && (a.Direct != "" || ofOnePerson(a.Channel) && b.Requester != person && !slices.Contains(b.Participants, person))
}

// A Placement is how a batch is shown in one place: these of its parts as cards, or
// a line in a digest. It depends on the budget of the place when the batch came, and
// is decided once, so that a batch in a digest is not posted later by itself.
type Placement struct {
	Place   card.Place       `json:"place,omitempty"`
	Channel string           `json:"channel"`
	Direct  approvals.UserID `json:"direct,omitempty"` // whose direct messages they are
	Parts   []int            `json:"parts,omitempty"`
	Asked   []int            `json:"asked,omitempty"` // the parts for which it is decided
	Digest  string           `json:"digest,omitempty"`
}

// inDigest reports whether a digest is to show the batch at this placement.
func (a *anchors) inDigest(r Placement) bool {
	missed := r.Place == card.PlaceEscalation && a.missed(r.Channel)
	return r.Digest != "" && !missed && !slices.Contains(a.Unreached, r.Direct)
}

// waits records that only lookups and digests are left to do for this version.
func (a *anchors) waits(version int64, sought bool, now time.Time) {
	if a.Waits, a.Sought = version, (time.Time{}); sought {
		a.Sought = now
	}
}

// outdated reports whether a message shows an older version of the batch, although Slack
// lets the app update it.
func (a *anchors) outdated(b approvals.Batch) bool {
	return slices.ContainsFunc(a.Anchors, func(x Anchor) bool { return x.Version < b.Version && x.Part < card.Parts(b) && !a.shut(x) })
}

// atHome reports whether a card of the batch is in its thread.
func (a *anchors) atHome() bool {
	return slices.ContainsFunc(a.Anchors, func(x Anchor) bool { return !x.Further && x.Direct == "" })
}

func (a *anchors) missed(channel string) bool {
	return slices.ContainsFunc(a.Missed, func(m card.Missed) bool { return m.Channel == channel })
}

// shut reports whether the message is in a channel in which Slack refused an update.
func (a *anchors) shut(x Anchor) bool { return x.Further && a.missed(x.Channel) }

func (a *anchors) miss(m card.Missed) {
	if !a.missed(m.Channel) {
		a.Missed = append(a.Missed, m)
	}
}

// reach records that the channel shows the batch again. The cards in the thread, which said
// that it does not, are drawn again.
func (a *anchors) reach(channel string) {
	a.Missed = slices.DeleteFunc(a.Missed, func(m card.Missed) bool { return m.Channel == channel })
	a.outdateHome()
}

func (a *anchors) find(channel, ts string) int {
	return slices.IndexFunc(a.Anchors, func(x Anchor) bool { return x.Channel == channel && x.TS == ts })
}

// redraws returns the arguments on the messages that show an older version of the batch.
func (a *anchors) redraws(b approvals.Batch) []approvals.ArgsKey {
	var all []approvals.ArgsKey
	for part := range card.Parts(b) {
		if !slices.ContainsFunc(a.Anchors, func(x Anchor) bool { return x.Part == part && x.Version < b.Version }) {
			continue
		}
		for _, of := range (card.Card{Batch: b, Part: part}).OnCard() {
			all = append(all, approvals.ArgsKey{Batch: b.ID, Digest: of.Call.Digest})
		}
	}
	return all
}

func (a *anchors) put(x Anchor) {
	if i := a.find(x.Channel, x.TS); i >= 0 {
		if x.Version > a.Anchors[i].Version {
			a.Anchors[i].Version, a.Anchors[i].Sum, a.Anchors[i].Whole = x.Version, x.Sum, x.Whole
		}
		return
	}
	a.Anchors = append(a.Anchors, x)
}

func (a *anchors) drop(x Anchor) {
	a.Anchors = slices.DeleteFunc(a.Anchors, func(y Anchor) bool { return y.Channel == x.Channel && y.TS == x.TS })
}

// outdate has every message of the batch drawn again.
func (a *anchors) outdate() {
	a.Waits = 0
	for i := range a.Anchors {
		a.Anchors[i].Version, a.Anchors[i].Sum, a.Anchors[i].Whole = 0, "", false
	}
}

func (r Placement) same(x Placement) bool { return r.Place == x.Place && r.Channel == x.Channel }

func (a *anchors) placement(t target) (Placement, bool) {
	i := slices.IndexFunc(a.Placements, t.placement().same)
	if i < 0 {
		return t.placement(), false
	}
	return a.Placements[i], true
}

func (a *anchors) setPlacement(r Placement) {
	a.Placements = append(slices.DeleteFunc(a.Placements, r.same), r)
}

// digest is the digest that lists the batch instead of a card in its thread, or
// empty.
func (a *anchors) digest() string {
	i := slices.IndexFunc(a.Placements, func(r Placement) bool { return r.Digest != "" && r.Place == card.PlaceThread })
	if i < 0 {
		return ""
	}
	return a.Placements[i].Digest
}

// directly is the channel of direct messages to the person of the target, or empty
// if it is not known.
func (a *anchors) directly(t target) string {
	if t.channel != "" {
		return t.channel
	}
	if i := slices.IndexFunc(a.Placements, func(r Placement) bool { return r.Direct == t.direct }); i >= 0 {
		return a.Placements[i].Channel
	}
	return ""
}

// others are the parts of the batch that belong to the place and have no card there.
// The last card that is posted there names them.
func (r Placement) others(part int, wants []int) []int {
	if len(r.Parts) == 0 || part != slices.Max(r.Parts) {
		return nil
	}
	return slices.DeleteFunc(wants, func(p int) bool { return slices.Contains(r.Parts, p) })
}

// unreached records that the person takes no direct message.
func (a *anchors) unreached(user approvals.UserID) {
	if !slices.Contains(a.Unreached, user) {
		a.Unreached = append(a.Unreached, user)
	}
}

// loses drops the person's messages with this part, because Slack does not let the
// app update them.
func (a *anchors) loses(user approvals.UserID, part int) {
	a.Anchors = slices.DeleteFunc(a.Anchors, func(x Anchor) bool { return x.Direct == user && x.Part == part })
}

// setUnasked records the calls. The cards in the thread, which say it, are drawn again.
func (a *anchors) setUnasked(now []card.Unasked) {
	a.Unasked = now
	a.outdateHome()
}

// outdateHome has the cards in the thread drawn again.
func (a *anchors) outdateHome() {
	for i, x := range a.Anchors {
		if !x.Further && x.Direct == "" {
			a.Anchors[i].Version = 0
		}
	}
}
