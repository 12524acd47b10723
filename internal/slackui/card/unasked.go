package card

import (
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Unasked is an open call that nobody could be asked about: nobody who can still help
// with it is in the conversation, and none of them got a direct message. Or it is one that
// those who were asked are too few to approve.
type Unasked struct {
	Call   int                `json:"call"` // of the batch
	Why    WhyUnasked         `json:"why"`
	From   approvals.From     `json:"from"`             // whom the call asks
	People []approvals.UserID `json:"people,omitempty"` // who takes no direct message
	Denied bool               `json:"denied,omitempty"` // whether enough could if denials were taken back
}

// WhyUnasked is why nobody could be asked.
type WhyUnasked string

// The reasons.
const (
	NobodyCan WhyUnasked = "nobody"     // there is nobody who can help
	NotKnown  WhyUnasked = "unknown"    // Slack does not say who can
	TooMany   WhyUnasked = "many"       // too many to send each a message
	NoMessage WhyUnasked = "no_message" // none takes a message of the app
	NoneSent  WhyUnasked = "none_sent"  // the policy sends none
	TooFew    WhyUnasked = "few"        // people were asked, and too few can approve it, also after its escalations
)

// Equal reports whether they say the same.
func (u Unasked) Equal(v Unasked) bool {
	return u.Call == v.Call && u.Why == v.Why && u.Denied == v.Denied && slices.Equal(u.People, v.People) &&
		slices.Equal(u.From.Users, v.From.Users) && slices.Equal(u.From.Groups, v.From.Groups)
}

// Asking returns u with whom its call of the batch asks. Where the words name those who were
// not asked, it leaves out who has decided the call, and who may not approve it.
func (u Unasked) Asking(b approvals.Batch) Unasked {
	a := b.Approvals[u.Call]
	u.From = a.Missing()
	if u.Why == TooMany || u.Why == NoneSent {
		u.From = b.Unbarred(a, u.From)
		u.From.Users = slices.DeleteFunc(u.From.Users, func(user approvals.UserID) bool {
			_, decided := a.DecisionBy(user)
			return decided
		})
	}
	return u
}

// Words say why nobody was asked, with names. They end without a period.
func (u Unasked) Words() []blockkit.Span {
	var from []blockkit.Span
	for _, g := range u.From.Groups {
		from = append(from, blockkit.GroupSpan(g))
	}
	from = append(from, blockkit.PersonSpans(u.From.Users)...)
	if len(from) == 0 {
		return []blockkit.Span{blockkit.Say(sayUnaskedNoApprovers)}
	}
	say := sayUnaskedNone
	switch u.Why {
	case NobodyCan:
	case NotKnown:
		say = sayUnaskedUnsure
	case TooMany:
		say = sayUnaskedTooMany
	case NoMessage:
		say = sayUnaskedUnreachable
		from = blockkit.PersonSpans(u.People)
	case NoneSent:
		say = sayUnaskedMuted
	case TooFew:
		say = sayUnaskedTooFew
	}
	spans := append([]blockkit.Span{blockkit.Say(say)}, blockkit.ListSpans(from, blockkit.NamesShown)...)
	if u.Denied {
		spans = append(spans, blockkit.Say(sayUnlessTakenBack))
	}
	return spans
}

// unasked says on the card in the thread which of its calls nobody was asked about.
func (o opening) unasked() []blockkit.Para {
	if o.Place != PlaceThread {
		return nil
	}
	var paras []blockkit.Para
	for _, u := range o.Unasked {
		i := u.Call - o.Part*CallsPerCard
		if i < 0 || i >= len(o.OnCard()) || o.OnCard()[i].Status != approvals.Pending {
			continue
		}
		nobody, about := sayNobodyAsked, " about "
		switch {
		case u.Why == TooFew:
			nobody, about = sayTooFewCan, " "
		case len(o.OnCard()[i].Deciders(o.OnCard()[i].Yes())) > 0:
			nobody = sayNobodyElseAsked
		}
		spans := append([]blockkit.Span{
			blockkit.Styled(nobody, blockkit.Bold), blockkit.Say(about),
			blockkit.Styled(blockkit.Brief(o.OnCard()[i].Call.Name, 60), blockkit.Code), blockkit.Say(": "),
		}, u.Words()...)
		paras = append(paras, blockkit.Line(append(spans, blockkit.Say("."))...))
	}
	return paras
}
