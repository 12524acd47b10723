package respond

import (
	"context"
	"errors"
	"fmt"
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
	Stop     string // how whoever asked stops their own request, in words
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
func (d Deed) undone() string {
	switch d {
	case Editing:
		return "Nothing was changed."
	case TakingBack:
		return "Nothing was taken back."
	case Reading:
		return "Nothing was decided."
	case deciding:
	}
	return "Your click was not counted."
}

// Explain turns err into what the person may read: what happened, why, and
// what to do now. It is mrkdwn of our own words and ids. Errors that are not
// known are not for people: they must be answered so that Slack shows its
// warning and the person tries again.
func Explain(err error, a Subject) (words string, known bool) {
	lookup, unanswered := errors.AsType[*directory.LookupError](err)
	barred, notAllowed := errors.AsType[*directory.NotAllowedError](err)
	switch {
	case notAllowed:
		return explainNotAllowed(barred), true
	case errors.Is(err, ref.ErrPointer):
		return "This button is damaged, or it was not made by Countersign. Nothing was decided. Open the request again with `/countersign list`.", true
	case errors.Is(err, inbound.ErrOtherTeam):
		return "This came from another Slack workspace than the one this Countersign serves. Nothing was decided.", true
	case errors.Is(err, inbound.ErrNoTeam):
		return "This came without a workspace, as from an installation for a whole organisation, which this Countersign does not serve. Nothing was decided.", true
	case errors.Is(err, directory.ErrMayNotLook):
		return explainMayNotLook(a), true
	case errors.Is(err, ErrForm):
		return "Slack did not open the form in time. Nothing was decided. Press the button again.", true
	case unanswered:
		return explainLookup(lookup), true
	case errors.Is(err, directory.ErrGone):
		return "This account is deactivated, so it cannot take part. Nothing was done.", true
	case errors.Is(err, directory.ErrBot):
		return "Bots and workflows cannot take part: only people can. Nothing was done.", true
	case errors.Is(err, directory.ErrGuest):
		return "Guests of this workspace cannot take part. Nothing was done. Ask a full member.", true
	case errors.Is(err, directory.ErrStranger):
		return "People from other organisations cannot take part. Nothing was done. Ask a member of this workspace.", true
	}
	return explainDecision(err, a)
}

func explainLookup(e *directory.LookupError) string {
	if e.What == "group" {
		return fmt.Sprintf("Slack did not say who is in %s, so it is not known whether you may sign. Nothing was decided. Try again in a moment.", blockkit.Group(e.Id))
	}
	if e.What == directory.AbsencesOf {
		return "It could not be looked up who is away, so it is not known for whom you may sign. Nothing was done. Try again in a moment."
	}
	return "Slack did not say whose account this is. Nothing was done. Try again in a moment."
}

func explainMayNotLook(a Subject) string {
	where := ""
	if blockkit.IDForm.MatchString(a.Batch.Channel) && blockkit.IsChannel(a.Batch.Channel) {
		where = ", and the members of " + blockkit.Group(a.Batch.Channel)
	}
	return "This request can be read by those who can sign it, by whoever asked for it" + where + ". You are none of them. Ask " +
		blockkit.Person(a.Batch.Requester) + " if you need to know more."
}

func explainNotAllowed(e *directory.NotAllowedError) string {
	return "You are not among those who may ask this agent, so nothing was started. It answers " + firstOf(fromWords(e.From)) + "."
}

func explainDecision(err error, a Subject) (string, bool) {
	undone := a.Deed.undone()
	switch {
	case errors.Is(err, approvals.ErrSettled):
		return settledWords(a), true
	case errors.Is(err, approvals.ErrExpired):
		return "Too late: the deadline was " + blockkit.When(a.Approval.Requirement.Deadline) + ". " + undone + " The call does not run. If it is still wanted, ask the agent again.", true
	case errors.Is(err, approvals.ErrOwnEdit):
		return "You changed what this call would do, so somebody else must sign it. " + undone + " It can be signed by " + a.signers() + ".", true
	case errors.Is(err, approvals.ErrOwnWords):
		return "You wrote to the agent in this thread before it made this call, so somebody else must approve it. " + undone + " It can be signed by " + a.signers() + ". You can still deny it.", true
	case errors.Is(err, approvals.ErrOwnRequest):
		return "You asked for this, so somebody else must sign it. " + undone + " It can be signed by " + a.signers() + "." + a.Stop, true
	case errors.Is(err, approvals.ErrDenied):
		return "Somebody denied this call, so whoever asked for it cannot change it any more, nor can others who wrote to the agent in its thread: that would wipe the denial away. " + undone + " An approver can still change it." + a.Stop, true
	case errors.Is(err, approvals.ErrAmendments):
		return "The arguments of this call were changed " + blockkit.Number(approvals.MaxAmendments) + " times, which is as often as they may be. " + undone + " Approve or deny it as it is.", true
	case errors.Is(err, approvals.ErrNotEligible):
		return notEligible(a), true
	case errors.Is(err, approvals.ErrStale) && a.Deed == Editing:
		return "The arguments were changed by somebody else after you had read them, so your change was not made. " + undone + " Read the card again: it shows the new ones in a moment. Then press Edit again.", true
	case errors.Is(err, approvals.ErrStale):
		return "The arguments changed after this card was drawn. " + undone + " Read the card again: it shows the new ones in a moment.", true
	case errors.Is(err, approvals.ErrReasonNeeded):
		return "An approval of this call must say why, and yours said nothing. " + undone + " Press Approve again: a form asks for the reason.", true
	case errors.Is(err, ErrCounted):
		return "Already counted: you " + past(a) + " this call, once. This click changed nothing; the card says what is still missing.", true
	case errors.Is(err, approvals.ErrDecided):
		return "You already " + past(a) + " this call, and that stands. This click changed nothing. To decide otherwise, press Take back first.", true
	case errors.Is(err, approvals.ErrNoDecision):
		return "There is no decision of yours on this call as it is now: you made none, or the arguments changed since and it counts no more. " + undone + " Decide with Approve or Deny.", true
	case errors.Is(err, approvals.ErrAbsence):
		return "An absence like that is not possible: it lasts at most " + blockkit.Number(int(approvals.MaxAbsence.Hours()/24)) + " days, and nobody stands in for themselves, directly or through others. Nothing was changed. Choose other days or somebody else.", true
	case errors.Is(err, approvals.ErrNotFound) && a.Deed == Editing && a.Approval.Call.ID != "":
		return "The tool of this call is not there any more, so its arguments cannot be changed. " + undone + " Deny it, or ask whoever runs Countersign.", true
	case errors.Is(err, approvals.ErrNotFound):
		return "This request no longer exists. Nothing was decided. If it is still wanted, ask the agent again.", true
	case errors.Is(err, approvals.ErrRefused):
		return "The policy refuses this call, whoever signs it. Nothing was decided.", true
	case errors.Is(err, ErrNoForm):
		return "No form can change the arguments of this call: the tool does not say what they are, or they are hidden or too long. " + undone + " Approve or deny it as it is.", true
	case errors.Is(err, approvals.ErrInvalid) && a.Deed == Editing:
		return "The arguments of this call cannot be changed here. " + undone + " Approve or deny it as it is, and ask whoever runs Countersign.", true
	case errors.Is(err, approvals.ErrConflict), errors.Is(err, ErrTryAgain):
		return "Many people are deciding at this moment. " + undone + " Try again.", true
	}
	return "", false
}

// notEligible says who could have, and why standing in for somebody does not
// help.
func notEligible(a Subject) string {
	if a.Deed == Editing {
		return "Only the approvers of this call, and whoever asked for it, can change its arguments. " + a.Deed.undone() + " Its approvers are " + a.signers() + "."
	}
	words := "You are not an approver of this call. " + a.Deed.undone() + " It can be signed by " + a.signers() + "."
	if a.Approval.Requirement.Delegation {
		words += " Whoever is away may have named somebody to sign for them; nobody who can sign this has named you for now."
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

func settledWords(a Subject) string {
	o := a.Approval.Outcome(a.Now)
	at, by := "", ""
	if !o.At.IsZero() {
		at = " (" + blockkit.When(o.At) + ")"
	}
	if len(o.By) > 0 {
		by = " by " + card.Names(card.Users(o.By))
	}
	switch o.Status {
	case approvals.Approved:
		return "Already settled: approved" + by + at + ". Your click changed nothing."
	case approvals.Denied:
		return "Already settled: denied" + by + at + ". Your click changed nothing."
	case approvals.Expired:
		return "Already settled: it expired" + at + " without enough signatures and does not run. If it is still wanted, ask the agent again."
	case approvals.Withdrawn:
		if o.Superseded {
			return "Already settled: it was superseded" + at + ", because " + card.Names(card.Users(o.By)) + " wrote something new, and does not run. Your click changed nothing."
		}
		return "Already settled: it was withdrawn" + by + at + " and does not run. Your click changed nothing."
	case approvals.Pending:
	}
	return "This call is already settled. Your click changed nothing."
}

// past is what the person has decided before.
func past(a Subject) string {
	if d, _ := a.Approval.DecisionBy(approvals.UserID(a.User)); d.Verdict == approvals.Deny {
		return "denied"
	}
	return "approved"
}

// signers are those whom the requirement names and who may sign: nobody who is
// refused, and nobody who asked for the call or changed it, if that bars them.
func (a Subject) signers() string {
	var all []string
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
		return "nobody else: the policy names no other approver"
	}
	return "nobody: the policy names no approvers"
}

// firstOf lists the first few, and how many more there are.
func firstOf(all []string) string {
	if more := len(all) - blockkit.NamesShown; more > 0 {
		all = append(all[:blockkit.NamesShown], blockkit.Number(more)+" more")
	}
	return blockkit.List(all)
}

func fromWords(from approvals.From) []string {
	var words []string
	for _, g := range from.Groups {
		words = append(words, blockkit.Group(g))
	}
	for _, u := range from.Users {
		words = append(words, blockkit.Person(u))
	}
	return words
}
