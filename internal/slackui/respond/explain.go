package respond

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/inbound"
	"github.com/countersign/countersign/internal/slackui/ref"
)

// Subject is what an explanation can refer to. All of it may be missing.
type Subject struct {
	Deed     Deed
	User     string
	Batch    approvals.Batch
	Approval approvals.Approval
	Now      time.Time
	Stop     blockkit.Mrkdwn // how whoever asked stops their own request, in words
}

// Deed is what the person was doing.
type Deed string

// The deeds.
const (
	deciding   Deed = ""
	Editing    Deed = "edit"
	TakingBack Deed = "take back"
	Reading    Deed = "read"
)

// undone says what came of it: nothing.
func (d Deed) undone() blockkit.Mrkdwn {
	switch d {
	case Editing:
		return blockkit.Ours("Nothing was changed.")
	case TakingBack:
		return blockkit.Ours("Nothing was taken back.")
	case Reading:
		return blockkit.Ours("Nothing was decided.")
	case deciding:
	}
	return blockkit.Ours("Your click was not counted.")
}

// Explain turns err into what the person may read: what happened, why, and
// what to do now. It is mrkdwn of our own words and ids. Errors that are not
// known are not for people: they must be answered so that Slack shows its
// warning and the person tries again.
func Explain(err error, a Subject) (words blockkit.Mrkdwn, known bool) {
	lookup, unanswered := errors.AsType[*directory.LookupError](err)
	barred, notAllowed := errors.AsType[*directory.NotAllowedError](err)
	switch {
	case notAllowed:
		return explainNotAllowed(barred), true
	case errors.Is(err, ref.ErrPointer):
		return blockkit.Ours("This button is damaged, or it was not made by Countersign. Nothing was decided. Open the request again with `/countersign list`."), true
	case errors.Is(err, inbound.ErrOtherTeam):
		return blockkit.Ours("This came from another Slack workspace than the one this Countersign serves. Nothing was decided."), true
	case errors.Is(err, inbound.ErrNoTeam):
		return blockkit.Ours("This came without a workspace, as from an installation for a whole organization, which this Countersign does not serve. Nothing was decided."), true
	case errors.Is(err, directory.ErrMayNotRead):
		return explainMayNotRead(a), true
	case errors.Is(err, ErrForm):
		return blockkit.Ours("Slack did not open the form in time. Nothing was decided. Press the button again."), true
	case unanswered:
		return explainLookup(lookup), true
	case errors.Is(err, directory.ErrGone):
		return blockkit.Ours("This account is deactivated, so it cannot take part. Nothing was done."), true
	case errors.Is(err, directory.ErrBot):
		return blockkit.Ours("Bots and workflows cannot take part: only people can. Nothing was done."), true
	case errors.Is(err, directory.ErrGuest):
		return blockkit.Ours("Guests of this workspace cannot take part. Nothing was done. Ask a full member."), true
	case errors.Is(err, directory.ErrStranger):
		return blockkit.Ours("People from other organizations cannot take part. Nothing was done. Ask a member of this workspace."), true
	}
	return explainDecision(err, a)
}

func explainLookup(e *directory.LookupError) blockkit.Mrkdwn {
	if e.What == "group" {
		return blockkit.Ours("Slack did not say who is in %s, so it is not known whether you may sign. Nothing was decided. Try again in a moment.", blockkit.Group(e.Id))
	}
	if e.What == directory.AbsencesOf {
		return blockkit.Ours("It could not be looked up who is away, so it is not known for whom you may sign. Nothing was done. Try again in a moment.")
	}
	return blockkit.Ours("Slack did not say whose account this is. Nothing was done. Try again in a moment.")
}

func explainMayNotRead(a Subject) blockkit.Mrkdwn {
	var where blockkit.Mrkdwn
	if blockkit.IDForm.MatchString(a.Batch.Channel) && blockkit.IsChannel(a.Batch.Channel) {
		where = blockkit.Ours(", and the members of %s", blockkit.Group(a.Batch.Channel))
	}
	return blockkit.Ours("This request can be read by those who can sign it, by whoever asked for it%s. You are none of them. Ask "+
		"%s if you need to know more.", where, blockkit.Person(a.Batch.Requester))
}

func explainNotAllowed(e *directory.NotAllowedError) blockkit.Mrkdwn {
	return blockkit.Ours("You are not among those who may ask this agent, so nothing was started. It answers %s.", firstOf(fromWords(e.From)))
}

func explainDecision(err error, a Subject) (blockkit.Mrkdwn, bool) {
	undone := a.Deed.undone()
	switch {
	case errors.Is(err, approvals.ErrSettled):
		return settledWords(a), true
	case errors.Is(err, approvals.ErrExpired):
		return blockkit.Ours("Too late: the deadline was %s. %s The call does not run. If it is still wanted, ask the agent again.", blockkit.When(a.Approval.Requirement.Deadline), undone), true
	case errors.Is(err, approvals.ErrOwnEdit):
		return blockkit.Ours("You changed what this call would do, so somebody else must sign it. %s It can be signed by %s.", undone, a.signers()), true
	case errors.Is(err, approvals.ErrOwnWords) && a.Batch.Executor != "":
		return blockkit.Ours("You may be the one who asked for this call, so somebody else must approve it. %s It can be signed by %s. You can still deny it.", undone, a.signers()), true
	case errors.Is(err, approvals.ErrOwnWords):
		return blockkit.Ours("You wrote to the agent in this thread before it made this call, so somebody else must approve it. %s It can be signed by %s. You can still deny it.", undone, a.signers()), true
	case errors.Is(err, approvals.ErrOwnRequest):
		return blockkit.Ours("You asked for this, so somebody else must sign it. %s It can be signed by %s.%s", undone, a.signers(), a.Stop), true
	case errors.Is(err, approvals.ErrDenied):
		return blockkit.Ours("Somebody denied this call, so whoever asked for it cannot change it any more, nor can others who wrote to the agent in its thread: that would wipe the denial away. %s An approver can still change it.%s", undone, a.Stop), true
	case errors.Is(err, approvals.ErrAmendments):
		return blockkit.Ours("The arguments of this call were changed %s times, which is as often as they may be. %s Approve or deny it as it is.", blockkit.Num(approvals.MaxAmendments), undone), true
	case errors.Is(err, approvals.ErrNotEligible):
		return notEligible(a), true
	case errors.Is(err, approvals.ErrStale) && a.Deed == Editing:
		return blockkit.Ours("The arguments were changed by somebody else after you had read them, so your change was not made. %s Read the card again: it shows the new ones in a moment. Then press Edit again.", undone), true
	case errors.Is(err, approvals.ErrStale):
		return blockkit.Ours("The arguments changed after this card was drawn. %s Read the card again: it shows the new ones in a moment.", undone), true
	case errors.Is(err, approvals.ErrReasonNeeded):
		return blockkit.Ours("An approval of this call must say why, and yours said nothing. %s Press Approve again: a form asks for the reason.", undone), true
	case errors.Is(err, ErrCounted):
		return blockkit.Ours("Already counted: you %s this call, once. This click changed nothing; the card says what is still missing.", past(a)), true
	case errors.Is(err, approvals.ErrDecided):
		return blockkit.Ours("You already %s this call, and that stands. This click changed nothing. To decide otherwise, press Take back first.", past(a)), true
	case errors.Is(err, approvals.ErrNoDecision):
		return blockkit.Ours("There is no decision of yours on this call as it is now: you made none, or the arguments changed since and it counts no more. %s Decide with Approve or Deny.", undone), true
	case errors.Is(err, approvals.ErrAbsence):
		return blockkit.Ours("An absence like that is not possible: it lasts at most %s days, and nobody stands in for themselves, directly or through others. Nothing was changed. Choose other days or somebody else.", blockkit.Num(int(approvals.MaxAbsence.Hours()/24))), true
	case errors.Is(err, approvals.ErrNotFound) && a.Deed == Editing && a.Approval.Call.ID != "":
		return blockkit.Ours("The tool of this call is not there any more, so its arguments cannot be changed. %s Deny it, or ask whoever runs Countersign.", undone), true
	case errors.Is(err, approvals.ErrNotFound):
		return blockkit.Ours("This request no longer exists. Nothing was decided. If it is still wanted, ask the agent again."), true
	case errors.Is(err, approvals.ErrRefused):
		return blockkit.Ours("The policy refuses this call, whoever signs it. Nothing was decided."), true
	case errors.Is(err, ErrNoForm):
		return blockkit.Ours("No form can change the arguments of this call: the tool does not say what they are, or they are hidden or too long. %s Approve or deny it as it is.", undone), true
	case errors.Is(err, approvals.ErrInvalid) && a.Deed == Editing:
		return blockkit.Ours("The arguments of this call cannot be changed here. %s Approve or deny it as it is, and ask whoever runs Countersign.", undone), true
	case errors.Is(err, approvals.ErrConflict), errors.Is(err, ErrTryAgain):
		return blockkit.Ours("Many people are deciding at this moment. %s Try again.", undone), true
	}
	return blockkit.Mrkdwn{}, false
}

// notEligible says who could have, and why standing in for somebody does not
// help.
func notEligible(a Subject) blockkit.Mrkdwn {
	if a.Deed == Editing {
		return blockkit.Ours("Only the approvers of this call, and whoever asked for it, can change its arguments. %s Its approvers are %s.", a.Deed.undone(), a.signers())
	}
	words := blockkit.Ours("You are not an approver of this call. %s It can be signed by %s.", a.Deed.undone(), a.signers())
	if a.Approval.Requirement.Delegation {
		words = blockkit.Ours("%s Whoever is away may have named somebody to sign for them; nobody who can sign this has named you for now.", words)
	}
	return words
}

// ErrTryAgain is something passing that the person can simply repeat.
var ErrTryAgain = errors.New("try again")

// IsTryAgain reports whether the same attempt may work in a moment.
func IsTryAgain(err error) bool {
	return errors.Is(err, directory.ErrLookup) || errors.Is(err, ErrTryAgain) ||
		errors.Is(err, approvals.ErrConflict) || errors.Is(err, context.DeadlineExceeded)
}

func settledWords(a Subject) blockkit.Mrkdwn {
	o := a.Approval.Outcome(a.Now)
	var at, by blockkit.Mrkdwn
	if !o.At.IsZero() {
		at = blockkit.Ours(" (%s)", blockkit.When(o.At))
	}
	if len(o.By) > 0 {
		by = blockkit.Ours(" by %s", card.Names(card.Users(o.By)))
	}
	switch o.Status {
	case approvals.Approved:
		return blockkit.Ours("Already settled: approved%s%s. Your click changed nothing.", by, at)
	case approvals.Denied:
		return blockkit.Ours("Already settled: denied%s%s. Your click changed nothing.", by, at)
	case approvals.Expired:
		return blockkit.Ours("Already settled: it expired%s without enough signatures and does not run. If it is still wanted, ask the agent again.", at)
	case approvals.Withdrawn:
		if o.Superseded {
			return blockkit.Ours("Already settled: it was superseded%s, because %s wrote something new, and does not run. Your click changed nothing.", at, card.Names(card.Users(o.By)))
		}
		return blockkit.Ours("Already settled: it was withdrawn%s%s and does not run. Your click changed nothing.", by, at)
	case approvals.Pending:
	}
	return blockkit.Ours("This call is already settled. Your click changed nothing.")
}

// past is what the person has decided before.
func past(a Subject) blockkit.Mrkdwn {
	if d, _ := a.Approval.DecisionBy(approvals.UserID(a.User)); d.Verdict == approvals.Deny {
		return blockkit.Ours("denied")
	}
	return blockkit.Ours("approved")
}

// signers are those whom the requirement names and who may sign: nobody who is
// refused, and nobody who asked for the call or changed it, if that bars them.
func (a Subject) signers() blockkit.Mrkdwn {
	var all []blockkit.Mrkdwn
	named := false
	for _, q := range a.Approval.Requirement.Quorums {
		named = named || len(q.From.Groups)+len(q.From.Users) > 0
		from := a.Batch.Unbarred(a.Approval, q.From)
		from.Users = slices.DeleteFunc(from.Users, func(u approvals.UserID) bool { return string(u) == a.User })
		for _, f := range fromWords(from) {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	switch {
	case len(all) > 0:
		return firstOf(all)
	case named:
		return blockkit.Ours("nobody else: the policy names no other approver")
	}
	return blockkit.Ours("nobody: the policy names no approvers")
}

// firstOf lists the first few, and how many more there are.
func firstOf(all []blockkit.Mrkdwn) blockkit.Mrkdwn {
	if more := len(all) - blockkit.NamesShown; more > 0 {
		all = append(all[:blockkit.NamesShown], blockkit.Ours("%s more", blockkit.Num(more)))
	}
	return blockkit.And(all)
}

func fromWords(from approvals.From) []blockkit.Mrkdwn {
	var words []blockkit.Mrkdwn
	for _, g := range from.Groups {
		words = append(words, blockkit.Group(g))
	}
	for _, u := range from.Users {
		words = append(words, blockkit.Person(u))
	}
	return words
}
