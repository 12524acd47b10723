// Package agentrun runs agents whose calls may need people. A run never waits:
// it ends, with an answer, a failure, or with the calls that someone else has
// to decide about. Another run continues when they have decided.
//
// # The life of a run
//
//	mention                    ┌───────────── lease over, or drained ┐
//	   │  thread busy          ▼                                     │
//	   ├──────────────► waiting ──► queued ── claimed ──► running ───┤
//	   └─ thread free ────────────────▲                     │        │
//	                                  │                     ├──► completed
//	 resume run: its batch is settled ┘                     ├──► failed
//	                                                        ├──► deferred ──► batch
//	                                                        └──► parked
//
// [Runner.Mention] makes a run, or finds the one that the same event has made.
// [Runner.Work] claims it with a random fence and a lease, and takes steps
// until the run ends. What a step does follows from the history alone, so that
// a worker that takes over continues where the last one stopped:
//
//   - The history ends with a request: ask the model, and commit its response
//     before anything of it is done.
//   - It ends with a response that has calls: rule on each of them, execute what
//     may run, answer what may not. If nothing is left open, commit the results
//     as one request, in the order in which the calls were made.
//   - Something needs a person, or runs elsewhere: open a batch, and commit run,
//     results, batch and facts in one step. The run is deferred. The thread stays
//     busy.
//   - It ends with a response without calls: that is the answer.
//
// [Runner.Resume] makes the run that takes up the answers of a settled batch.
// Its first step checks that the answers are exactly for the calls that have no
// result ([Match]), and executes what was approved, as it was approved.
//
// # A message while calls are pending
//
// The agent's [PendingRule] says what such a message does. By default a message of the
// person who asked ends what is pending, and is the prompt of the resume run:
// the model reads in one turn that the calls did not run, why, and what the
// person wrote. The run that the mention made is then merged, and over. What was
// approved before the message stays approved, and runs with that resume run.
//
// One commit keeps the message in the queue and ends the batch. That a resume
// run is due, and which message it takes up, follows from the two, so a process
// that dies in between loses nothing. An approval that comes at the same time is
// either before that commit, and counts, or finds the call settled.
//
// # Agents that run elsewhere
//
// [Runner.Submit] takes the calls of an agent that this program does not run. It
// rules on each like on a call of ours and commits a run that is deferred from
// birth, with its [Run.Executor] and a batch like any other: people see and
// decide it in the same way. Such a run is never worked on and never resumed.
// When its batch is settled, [Runner.Deliver] gives the answers to the executor.
//
// Where the tools are here and only the agent is elsewhere, the executor claims the
// decision and has [Runner.Execute] execute the call while the agent waits. That is
// a run of its own, which takes up the answers and keeps a journal like any other,
// asks no model, and ends with the results. What is permitted and changes nothing
// [Runner.Perform] executes, which stores nothing.
//
// # Calls that the provider of the model runs
//
// A call with an [CallPart].ApprovalRequest runs at the provider of the model, on a
// server that it hosts. It is ruled on, decided and journaled like any other. Its
// execution is a request to the model that says so ([ModelRequest].Approved): one
// request for all such calls of a step, after the calls of ours have run, since a
// model is not asked before each call has a result or is approved. The answer has what
// came of them, which is stored as their results, and then what the model says next.
// If nothing certain comes back, the calls are in doubt. What the provider ran without
// such a request ends the run and is in its journal, also if the answer breaks off.
//
// # Who asked for a call
//
// The model acts on everything that it is sent, which is the whole thread. So
// those who asked for a call are the requester of its run and everyone else
// whose words were in the history when the model made the call: they are the
// participants of the batch ([approvals.Batch]), and do not approve it unless
// the rule says so. A [Request] notes its authors when it is stored:
//
//   - whoever wrote its prompt,
//   - whoever denied or ended a call and said why, because the reason is quoted
//     to the model: "delete /srv/b instead" asks for the next call,
//   - whoever changed the arguments of a call that was approved, because the
//     model is told of them.
//
// An approval without changes sends the model no words, nor does a message that
// still waits in the queue. Results of tools and of other systems are not the
// words of a participant, even if a participant wrote the file that a tool has
// read.
//
// # How long an approval holds
//
// An approval is for one call with exactly these arguments. While its call is
// open, the person may take it back, and a change of the arguments clears it.
// Once all quorums of the call are met, the call is settled and stays so; yet it
// is executed only when every call of its batch is. So what was approved first may
// run as late as the last of its siblings is decided, fulfilled or expired: at
// the latest deadline in the batch, or whenever a sibling without one ends.
//
// The world may have moved on meanwhile. Therefore the arguments are validated
// again and the policy is asked again right before the execution: a refusal
// stops the call, and a policy that cannot judge stops the step, which is tried
// again later. It cannot judge if it fails, and if a rule of it that might
// refuse does ([approvals.Ask].Unjudged); but where people were asked because of
// just that, their approval is for it too. Nothing else that the policy says
// lifts the approval or asks for another one. A call that waits for others of its
// step for a second or more is asked about once more when its turn comes.
//
// # What a call would change
//
// A tool may say what a call would change ([Previewer]) before people are asked
// about it. The model chose the arguments, so a preview could carry out what the
// agent may not read. It is made only if the agent could read the same without
// asking anyone, and otherwise the batch says why there is none. A preview that
// fails or takes too long does not keep people from being asked.
//
// The preview has a precondition: what must still be so when the call runs. It is
// compared again before the execution, by the tool on the very thing that it then
// changes, or else by a second preview. If it does not hold, nothing is executed:
// the journal says so, the approval is spent, and a new batch asks again and shows
// both what people saw and what is there now. After [MaxReasks] times the run
// stops. A worker that takes over finds the refusal in the journal and asks again
// too, whatever the world is like by then.
//
// # What a policy knows of the run
//
// A [approvals.Proposal] says what the request has led to so far, over the run
// and all that it resumes, see [SoFar]; other requests of the thread do not
// count. It is counted from what is committed, so a worker that takes over asks
// the policy the same question.
//
// A policy that counts the calls of a day ([Ledger]) is asked twice about a call
// that may run: once before the call is entered in the ledger of its requester,
// and once more when its place there is known. So calls of other threads, on
// other replicas, are counted exactly.
//
// The calls of one response are ruled on in their order, before any of them
// runs. To those after it, a call that may run counts as executed, also if it
// fails later, and one that the policy refuses as denied; one that people are
// asked about counts as neither. So a rule that says executed < 5 lets five
// calls of a response through, however many it proposes. The same holds on
// resume for what was approved: such a rule refuses the sixth, though it is approved.
// A call that a tool sets aside while it runs is proposed when the others of the
// step have ended, and sees what came of them; the batch has the same counts for
// what is proposed while it is open.
//
// # The files
//
// A file uses those on its own line and below it, and none above it.
//
//	mention.go, resumer.go, supersede.go   what makes a run: a message, a settled batch
//	execute_remote.go, perform.go          the calls of a remote run, executed here
//	park.go, abandon.go                    what people do with a run
//	check.go                               the tools of agents, for people
//	work.go                                claim a run, work on it, let go of it
//	loop.go                                worker: one step after the other, and how a step ends
//	answers.go                             answers: from the answers of a batch to plans
//	doubt.go                               doubts: calls that a worker began and did not finish
//	rulings.go                             rulings: what the tool and the policy say of a call
//	previews.go                            previews: what the calls would change, for the approvers
//	hosted.go                              provider: have the model's provider run calls
//	unapproved.go                          what the provider ran without approval
//	execute.go, precondition.go, late.go   executor: run the calls, and write the journal
//	deferral.go, ending.go                 the ways in which a run ends
//	session.go, authors.go                 session: what a worker knows of its run
//	claim.go, runner.go                    a worker's hold on a run; the Runner and its Config
//	plan.go, plans.go, changed.go          what becomes of one call; of all calls of a step
//	toolset.go, sofar.go                   which tools there are, what has come of a request
//	intake.go, history.go, result.go       read a response and a history, make results
//	guard.go                               call what others have written
//	store.go, model.go, agent.go           the ports and the agent
//	tool.go, effect.go, preview.go         the port of the tools
//	run.go, journal.go, message*.go        the documents; limits.go, ids.go, errors.go beside them
//
// A step has one goroutine, and calls that run at the same time have one each.
// They share the session. Its history and its authors change while the run goes
// on, and belong to the goroutine of the step. The claim has a lock of its own,
// and the executor counts with an atomic number.
//
// # What never happens
//
//   - A call is executed that is not permitted by the policy or approved by people.
//     What cannot be judged, by an error, a panic or an unknown answer, is asked
//     about with the strictest requirement. What is already approved waits until it
//     can be judged, and after many attempts for people ([Runner.Park]).
//   - A call is executed twice without being asked about again. Each execution is an
//     [Entry] in the journal: its beginning is stored before the effect, its end
//     after; of one that is [EffectPure] both are stored with its result, and it may
//     run again. A call that a dead worker began is in doubt: the [Effect] of its tool
//     says that it may run again, or people do, with the whole quorum.
//   - Anything is executed after a limit is reached, or could not be followed by
//     the request that tells the model what happened. Nor are people asked about
//     calls that a limit would stop if all of them were approved.
//   - Calls that cannot be told from each other are executed: a response with an
//     empty or repeated id, or with more than [MaxCalls], is not kept, and the
//     model is asked again, once. An id that an earlier response had becomes a new
//     one before anything is stored.
//   - The history is left with a call that has no result while a person says
//     something else.
//
// # One package
//
// A worker's step reads the history, the answers, the journal and the tools, and
// commits one change of all of them: its parts ([Runner] aside: session, rulings,
// previews, executor, claim) are types with an order, not packages. The clients
// of models are packages below.
package agentrun
