// Package approvals is the core of Countersign: what people are asked before
// an agent's tool call may run, what they said, and what follows from it. It
// does no I/O, reads no clock, and imports nothing but the standard library.
//
// These seventeen sentences always hold, and a fuzz test checks each of them
// after every command:
//
//  1. [Batch.Apply] never changes its receiver.
//  2. The version moves exactly when there are events.
//  3. The outcome of a settled approval never moves; a decision on it is
//     [ErrSettled] ([ErrExpired] if it was the time that settled it).
//  4. [Resolved] is emitted once, when the last item settles.
//  5. [Batch.Results] exists exactly when settled and answers exactly the
//     deferred calls.
//  6. A person counts once in each way to meet a requirement; with Separation
//     the requester never counts, and no participant counts as an approver.
//  7. A decision whose digest is not the current one is [ErrStale]: people
//     approve what they saw. [Amend] clears earlier decisions.
//  8. Status equals what the decisions imply; it is stored only for readers.
//  9. The same commands give the same batch, byte for byte.
//  10. The order of decisions by different people does not change whether the
//     quorums are met. Stages order who is asked, not whose approval counts.
//  11. [Decide] at or after the deadline is [ErrExpired], [Expire] before it is
//     [ErrNotYet], swept or not.
//  12. [Amend] names the digest it replaces and carries the ruling of the
//     current policy: a new requirement replaces the old, with no later a
//     deadline, [Permit] keeps the old, [Refuse] refuses. It never lowers the
//     severity. The editor does not count unless the rule says so, nor when
//     people are asked about the same call again. A person who asked for a call
//     cannot clear another person's denial by amending it.
//  13. A delegate fills one place, and so does the person who is away, however
//     many delegates approve for them. A delegate does not count for a person
//     who may not approve, who is back, or who named no delegate, nor if a
//     person who may not approve passed the delegation on.
//  14. [Climb] takes every rung of a ladder once, in order, not before its time,
//     while the call is open. A rung adds people who may approve and never
//     removes any.
//  15. Time moves the batch, by [Climb] or [Expire], at [Batch.Next] and not
//     before it.
//  16. [Conclude] records what became of an approved call, once, and moves
//     nothing else. Only a call in doubt, or claimed, is recorded anew.
//  17. A call in doubt is answered by [RunAgain], [Happened] and [GiveUp] and by
//     no other verdict, and never amended. Run again needs the whole requirement;
//     the others, one person who may approve. [Report] records once what its
//     worker says late, and moves nothing else.
//
// # The story
//
// An agent proposes a [ToolCall]. A [Policy] rules on it: [Permit], [Refuse] or
// [Ask]. When a run has calls to ask about, or calls that run elsewhere, it
// does not wait: it ends, and [Open] makes a [Batch] of them. Nothing of the
// run is left in memory.
//
// People click. An adapter turns the click into a [Command], with the groups
// the person was in at that moment and the [Digest] of the arguments they saw.
// [Batch.Apply] is a pure function from a batch and a command to the next batch
// and the facts, the [Event] values, that led there. The [Desk] commits both in
// one step, and tries again when another commit came first.
//
//	         Decide (quorum not met), ┐
//	         Climb (a rung is due)     │
//	                             ┌─────▼─────┐  Decide, Climb (all met)    approved
//	Opened ─────────────────────►│  pending  │───────────────────────────►   denied
//	                             └─────┬─────┘  Decide (Deny, a veto)      expired
//	         Amend: new digest, ───────┘        Expire, Withdraw           withdrawn
//	         decisions cleared                        last one settles ──► Resolved
//
// A [Requirement] says who must approve: each [Quorum] needs a number of
// different people, and a person fills one place, so a member of two of the
// groups counts as one approval and not two. The batch keeps its own copy of
// it. What is empty, unknown or missing never approves: no quorums, a quorum
// that needs zero people, a person without a name, a command without a time.
//
// Quorums may be alternatives: of all options of a choice one is enough. Each
// combination of options is a way to meet the requirement. In every way, each
// approver is assigned one place: their own or, where the rule has Delegation,
// that of a person who is away and named them ([Absence]). A further approval
// may move earlier ones to other places and never removes one. Enough denials
// settle a call too, and so does a veto, whose people may deny though they may
// not approve.
//
// A call that is left open is followed up by its ladder, which reminds the
// people who can still help ([Batch.Helps]), lets more people approve, and shows
// the call in other channels ([Batch.Channels]), until its deadline ends it.
// [Desk.Tick] applies what is due, and [Batch.Next] says when the next thing is.
//
// When the last call has its outcome, [Batch.Results] gives the answers for the
// model, and another run continues with them. It takes the arguments that are
// to be executed and compares them with what was approved.
//
// # One package
//
// The rules above hold between all of these types: a command, a sheet and a result
// are each judged by the same requirement, decisions and digests. What judges
// texts and not calls is package spoof.
package approvals
