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
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/slackui/verdict"
)

// Subject is what an explanation can refer to. All of it may be missing.
type Subject struct {
	Attempt  Attempt
	User     string
	Batch    approvals.Batch
	Approval approvals.Approval
	Now      time.Time
	Stop     blockkit.Mrkdwn // how the requester stops the request
	OnCard   bool            // the person pressed in a message that is known to be a card of the batch

	Deserted []approvals.GroupID // groups of the call in which nobody else is left who could approve it
	Gone     []approvals.UserID  // people whom the call names and who can't take part any more
}

// Attempt is what the person tried to do. The zero value is anything else than the
// attempts below, such as approving.
type Attempt string

// The attempts that have words of their own.
const (
	Editing Attempt = "edit"
	Denying Attempt = "deny"
	// Answering is any verdict on a call in doubt.
	Answering Attempt = "answer"
)

// Explain turns err into what the person may read: what happened, that nothing
// changed, and what to do now. It is mrkdwn of our own words and ids. Errors that are not
// known are not for people: they must be answered so that Slack shows its
// warning and the person tries again.
func Explain(err error, a Subject) (words blockkit.Mrkdwn, known bool) {
	lookup, unanswered := errors.AsType[*directory.LookupError](err)
	barred, notAllowed := errors.AsType[*directory.NotAllowedError](err)
	switch {
	case notAllowed:
		return explainNotAllowed(barred), true
	case errors.Is(err, ref.ErrPointer):
		return blockkit.Ours("This button is damaged or wasn't made by Countersign. Nothing changed. Open the request again with `/countersign list`."), true
	case errors.Is(err, inbound.ErrOtherTeam):
		return blockkit.Ours("This Countersign serves another Slack workspace than yours. Nothing changed. Ask a member of that workspace."), true
	case errors.Is(err, inbound.ErrNoTeam):
		return blockkit.Ours("Slack sent this without a workspace, as it does for an app that is installed for a whole organization. Countersign doesn't support that. Nothing changed. Tell your Countersign admin."), true
	case errors.Is(err, directory.ErrMayNotRead):
		return explainMayNotRead(a), true
	case errors.Is(err, ErrForm):
		return blockkit.Ours("Slack didn't open the form in time. Nothing changed. Press the button again."), true
	case unanswered:
		return explainLookup(lookup), true
	case errors.Is(err, directory.ErrGone):
		return blockkit.Ours("This account is deactivated and can't do this. Nothing changed. Ask an admin of your workspace."), true
	case errors.Is(err, directory.ErrUnknown):
		return blockkit.Ours("Slack doesn't know this account, so it can't do this. Nothing changed. Ask an admin of your workspace."), true
	case errors.Is(err, directory.ErrBot):
		return blockkit.Ours("Only people can do this, not bots or workflows. Nothing changed."), true
	case errors.Is(err, directory.ErrGuest):
		return blockkit.Ours("Guests of this workspace can't do this. Nothing changed. Ask a full member."), true
	case errors.Is(err, directory.ErrStranger):
		return blockkit.Ours("People from other organizations can't do this. Nothing changed. Ask a member of this workspace."), true
	}
	return explainDecision(err, a)
}

func explainLookup(e *directory.LookupError) blockkit.Mrkdwn {
	if e.Permanent() {
		return blockkit.Ours("Slack no longer has %s, or doesn't show it to this app, so nobody counts as a member of it. Nothing changed. Tell your Countersign admin.", blockkit.Group(e.ID))
	}
	switch {
	case errors.Is(e.Err, slackapi.ErrTooMany):
		return blockkit.Ours("%s has more members than Countersign reads, so your permission couldn't be checked. Nothing changed. Tell your Countersign admin.", blockkit.Group(e.ID))
	case e.Refused() && e.What == "group":
		return blockkit.Ours("Slack refuses to tell this app who is in %s, so your permission couldn't be checked. Nothing changed. Tell your Countersign admin.", blockkit.Group(e.ID))
	case e.Refused():
		return blockkit.Ours("Slack refuses to confirm your account to this app. Nothing changed. Tell your Countersign admin.")
	}
	if e.What == "group" {
		return blockkit.Ours("Slack couldn't tell who is in %s, so your permission couldn't be checked. Nothing changed. Try again in a moment.", blockkit.Group(e.ID))
	}
	if e.What == directory.AbsencesOf {
		return blockkit.Ours("Countersign couldn't check who is away, so your permission to approve for others isn't known. Nothing changed. Try again in a moment.")
	}
	return blockkit.Ours("Slack couldn't confirm your account. Nothing changed. Try again in a moment.")
}

func explainMayNotRead(a Subject) blockkit.Mrkdwn {
	var where blockkit.Mrkdwn
	if blockkit.IDForm.MatchString(a.Batch.Channel) && blockkit.IsChannel(a.Batch.Channel) {
		where = blockkit.Ours(", and so can the members of %s", blockkit.Group(a.Batch.Channel))
	}
	return blockkit.Ours("You can't read this request. Nothing changed. Its approvers and its requester can%s. Ask %s if you need to know more.", where, blockkit.Person(a.Batch.Requester))
}

func explainNotAllowed(e *directory.NotAllowedError) blockkit.Mrkdwn {
	return blockkit.Ours("You can't ask this agent. Nothing was started. It takes requests from %s.", firstOf(fromWords(e.From)))
}

func explainDecision(err error, a Subject) (blockkit.Mrkdwn, bool) {
	switch {
	case errors.Is(err, approvals.ErrSettled):
		return settledWords(a), true
	case errors.Is(err, approvals.ErrExpired) && a.Approval.InDoubt():
		return blockkit.Ours("Too late: the deadline was %s. Nothing changed. The call won't run again.", blockkit.When(a.Approval.Requirement.Deadline)), true
	case errors.Is(err, approvals.ErrNotInDoubt):
		return blockkit.Ours("Nobody is asked what became of this call: it has not run. Nothing changed. Open the request with `/countersign list` to approve or deny it."), true
	case errors.Is(err, approvals.ErrInDoubt):
		return blockkit.Ours("It isn't known whether this call took effect, so it can't be approved, denied or edited. Nothing changed. Open the request with `/countersign list` and press Run it again, It happened or Give up."), true
	case errors.Is(err, approvals.ErrExpired):
		return blockkit.Ours("Too late: the deadline was %s. Nothing changed. The call won't run. If you still need it, ask the agent again.", blockkit.When(a.Approval.Requirement.Deadline)), true
	case errors.Is(err, approvals.ErrOwnEdit):
		return blockkit.Ours("You edited this call, so %s. Nothing changed. %s", a.someoneElse(), a.approvers()), true
	case errors.Is(err, approvals.ErrOwnWords) && a.Batch.Executor != "":
		return blockkit.Ours("You may be the requester of this call, so someone else must approve it. Nothing changed. %s You can still deny it.", a.approvers()), true
	case errors.Is(err, approvals.ErrOwnWords):
		return blockkit.Ours("You wrote to the agent in this thread before it made this call, so someone else must approve it. Nothing changed. %s You can still deny it.", a.approvers()), true
	case errors.Is(err, approvals.ErrOwnRequest):
		return blockkit.Ours("You asked for this, so %s. Nothing changed. %s%s", a.someoneElse(), a.approvers(), a.Stop), true
	case errors.Is(err, approvals.ErrDenied):
		return blockkit.Ours("Someone denied this call, so its requester and others who wrote to the agent can no longer edit it. Nothing changed. An approver still can.%s", a.Stop), true
	case errors.Is(err, approvals.ErrNoEdits) && a.Approval.Hosted:
		return blockkit.Ours("The model provider runs this call as the model made it. Nothing changed. Approve or deny it as it is."), true
	case errors.Is(err, approvals.ErrNoEdits):
		return blockkit.Ours("The agent of this call can't take other arguments. Nothing changed. Approve or deny it as it is."), true
	case errors.Is(err, approvals.ErrAmendments):
		return blockkit.Ours("The arguments of this call were already edited %s times, the most that is allowed. Nothing changed. Approve or deny it as it is.", blockkit.Num(approvals.MaxAmendments)), true
	case errors.Is(err, approvals.ErrNotEligible):
		return notEligible(a), true
	case errors.Is(err, approvals.ErrStale) && a.Attempt == Editing:
		return blockkit.Ours("Someone else edited the arguments after you opened the form, so your edit wasn't saved. The card shows the new arguments in a moment. Read them, then press Edit again."), true
	case errors.Is(err, approvals.ErrStale):
		return blockkit.Ours("Someone edited the arguments after this card was posted. Nothing was decided. The card shows the new arguments in a moment. Read them, then decide."), true
	case errors.Is(err, approvals.ErrReasonNeeded):
		return blockkit.Ours("This approval needs a reason. Nothing changed. Press Approve again and enter one."), true
	case errors.Is(err, ErrCounted):
		return blockkit.Ours("You already %s this call, and that counts once. Nothing changed. The card shows what is still missing. It counts for the groups that you were in at that time: if you joined another, press Take back and decide again.", past(a)), true
	case errors.Is(err, approvals.ErrDecided):
		return blockkit.Ours("You already %s this call. Nothing changed. To decide otherwise, press Take back first.", past(a)), true
	case errors.Is(err, approvals.ErrNoDecision):
		return blockkit.Ours("You have no decision to take back: you made none, or the arguments were edited after it. Nothing changed. Press Approve or Deny to decide."), true
	case errors.Is(err, approvals.ErrAbsence):
		return blockkit.Ours("Countersign can't save this absence: it can last %s days at most, and you can't delegate to yourself, directly or through others. Nothing changed. Choose other dates or another delegate.", blockkit.Num(int(approvals.MaxAbsence.Hours()/24))), true
	case errors.Is(err, approvals.ErrNotFound) && a.Attempt == Editing && a.Approval.Call.ID != "":
		return blockkit.Ours("The tool of this call is gone, so its arguments can't be edited. Nothing changed. Deny the call, or ask your Countersign admin."), true
	case errors.Is(err, approvals.ErrNotFound):
		return blockkit.Ours("This request no longer exists. Nothing changed. If you still need it, ask the agent again."), true
	case errors.Is(err, approvals.ErrRefused):
		return blockkit.Ours("The policy refuses this call, so nobody can approve it. Nothing changed. To change the policy, ask your Countersign admin."), true
	case errors.Is(err, ErrNoForm):
		return blockkit.Ours("The arguments of this call can't be edited here: the tool doesn't describe them, or they are hidden or too long. Nothing changed. Approve or deny it as it is."), true
	case errors.Is(err, approvals.ErrInvalid) && a.Attempt == Editing:
		return blockkit.Ours("The arguments of this call can't be edited here. Nothing changed. Approve or deny it as it is, and tell your Countersign admin."), true
	case errors.Is(err, approvals.ErrConflict), errors.Is(err, ErrTryAgain):
		return blockkit.Ours("Several people are deciding right now. Nothing changed. Try again in a moment."), true
	}
	return blockkit.Mrkdwn{}, false
}

// notEligible says who could have, and that no approver made the person their
// delegate.
func notEligible(a Subject) blockkit.Mrkdwn {
	if a.Attempt == Editing {
		return blockkit.Ours("Only the approvers and the requester of this call can edit it. Nothing changed. %s", a.approvers())
	}
	words := blockkit.Ours("You can't %s this. Nothing changed. %s", a.verb(), a.approvers())
	if a.Approval.Requirement.Delegation {
		words = blockkit.Ours("%s An approver who is away can make you their delegate; right now, none has.", words)
	}
	return words
}

// ErrTryAgain is something passing that the person can simply repeat.
var ErrTryAgain = errors.New("try again")

// IsTryAgain reports whether the same attempt may work in a moment.
func IsTryAgain(err error) bool {
	lookup, unanswered := errors.AsType[*directory.LookupError](err)
	return unanswered && !lookup.Permanent() && !lookup.Lasts() || errors.Is(err, ErrTryAgain) ||
		errors.Is(err, approvals.ErrConflict) || errors.Is(err, context.DeadlineExceeded)
}

func settledWords(a Subject) blockkit.Mrkdwn {
	o := a.Approval.Outcome(a.Now)
	var at, by blockkit.Mrkdwn
	if !o.At.IsZero() {
		at = blockkit.Ours(" (%s)", blockkit.When(o.At))
	}
	if len(o.By) > 0 {
		by = blockkit.Ours(" by %s", card.Names(verdict.Users(o.By)))
	}
	if o.InDoubt {
		return doubtSettledWords(o, at, by)
	}
	switch o.Status {
	case approvals.Approved:
		return blockkit.Ours("Already approved%s%s. Nothing changed.", by, at)
	case approvals.Denied:
		return blockkit.Ours("Already denied%s%s. Nothing changed.", by, at)
	case approvals.Expired:
		return blockkit.Ours("This call expired%s without enough approvals, so it won't run. Nothing changed. If you still need it, ask the agent again.", at)
	case approvals.Withdrawn:
		if o.Superseded {
			return blockkit.Ours("This call was superseded%s by a newer message from %s, so it won't run. Nothing changed.", at, card.Names(verdict.Users(o.By)))
		}
		return blockkit.Ours("This call was withdrawn%s%s, so it won't run. Nothing changed.", by, at)
	case approvals.Pending, approvals.Confirmed:
	}
	return blockkit.Ours("Someone else already decided this. Nothing changed.")
}

// doubtSettledWords say how a call in doubt was settled, by whom and when.
func doubtSettledWords(o approvals.Outcome, at, by blockkit.Mrkdwn) blockkit.Mrkdwn {
	how := blockkit.Ours("Someone else already decided this.")
	switch {
	case o.Status == approvals.Expired:
		how = blockkit.Ours("Nobody decided this in time%s. %s", at, blockkit.Ours(sayDoubtStays))
	case o.Superseded:
		how = blockkit.Ours("This was superseded%s by a newer message from %s. %s", at, card.Names(verdict.Users(o.By)), blockkit.Ours(sayDoubtStays))
	case o.Status == approvals.Withdrawn:
		how = blockkit.Ours("This was withdrawn%s%s. %s", by, at, blockkit.Ours(sayDoubtStays))
	}
	return blockkit.Ours("%s Nothing changed.", how)
}

// sayDoubtStays is what is known of a call in doubt that was settled without a decision.
const sayDoubtStays = "The call won't run again, and whether it took effect isn't known."

// past is what the person has decided before.
func past(a Subject) blockkit.Mrkdwn {
	if a.Approval.InDoubt() {
		return blockkit.Ours("decided")
	}
	if d, _ := a.Approval.DecisionBy(approvals.UserID(a.User)); d.Verdict == approvals.Deny {
		return blockkit.Ours("denied")
	}
	return blockkit.Ours("approved")
}

// NamesApprovers reports whether the words about err say who can approve the call.
func NamesApprovers(err error) bool {
	return errors.Is(err, approvals.ErrNotEligible) || errors.Is(err, approvals.ErrOwnRequest) ||
		errors.Is(err, approvals.ErrOwnWords) || errors.Is(err, approvals.ErrOwnEdit)
}

// approvers says who can approve the call, of those whom the requirement names. It
// leaves out the person who is refused, those who asked for the call or edited it, if
// that bars them, those who can't take part any more, and groups in which nobody else is
// left.
func (a Subject) approvers() blockkit.Mrkdwn {
	var all []blockkit.Mrkdwn
	named := false
	for _, q := range a.Approval.Requirement.Quorums {
		named = named || len(q.From.Groups)+len(q.From.Users) > 0
		from := a.Batch.Unbarred(a.Approval, q.From)
		from.Users = slices.DeleteFunc(from.Users, func(u approvals.UserID) bool { return string(u) == a.User || slices.Contains(a.Gone, u) })
		from.Groups = slices.DeleteFunc(slices.Clone(from.Groups), func(g approvals.GroupID) bool { return slices.Contains(a.Deserted, g) })
		for _, f := range fromWords(from) {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	switch {
	case len(all) > 0:
		return blockkit.Ours("%s can %s it.", firstOf(all), a.verb())
	case len(a.Deserted) > 0:
		return blockkit.Ours("No one else can %s it right now: no one else is left in %s.", a.verb(), firstOf(fromWords(approvals.From{Groups: a.Deserted})))
	case len(a.Gone) > 0:
		return blockkit.Ours("No one else can %s it right now: %s can no longer take part. Tell your Countersign admin.", a.verb(), firstOf(fromWords(approvals.From{Users: a.Gone})))
	case named:
		return blockkit.Ours("No one else can %s it: the policy names no other approvers.", a.verb())
	}
	return blockkit.Ours("Nobody can %s it: the policy names no approvers.", a.verb())
}

// someoneElse says that the person can't do it themselves.
func (a Subject) someoneElse() blockkit.Mrkdwn {
	if a.Attempt == Denying {
		return blockkit.Ours("only someone else can deny it")
	}
	return blockkit.Ours("someone else must %s it", a.verb())
}

// verb is what the person wants to do to the call.
func (a Subject) verb() blockkit.Mrkdwn {
	switch a.Attempt {
	case Denying:
		return blockkit.Ours("deny")
	case Answering:
		return blockkit.Ours("decide")
	case Editing:
	}
	return blockkit.Ours("approve")
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
