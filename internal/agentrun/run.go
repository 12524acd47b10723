package agentrun

import (
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// A ThreadID names a [Thread].
type ThreadID string

// Origin is where a thread came from. Only the surface that made it understands
// it. Its fields together identify the thread.
type Origin struct {
	Surface string // "slack"
	Team    string
	Channel string
	Root    string // the message that the thread hangs on
}

// A Thread is one conversation: at most one active run, a queue of runs that
// wait for it, and one append-only list of messages which runs cite by range.
// Two runs never interleave in it. It lives in the partition of its origin.
type Thread struct {
	ID       ThreadID
	Origin   Origin
	Active   approvals.RunID   // empty: no run is active
	Queue    []approvals.RunID // in order
	Messages int               // how many are in the list
	Closed   string            // a sentence for people, if no run can begin here any more
	Version  int64             // of this document; 0 before it is stored
}

// A Run is one execution of an agent: it begins with a mention, or with the
// answers to a deferred run (its Parent), and ends with an answer, a deferral
// or a failure.
type Run struct {
	ID           approvals.RunID
	Thread       ThreadID
	Origin       Origin
	Parent       approvals.RunID   // the deferred run that this one resumes
	Batch        approvals.BatchID // of Parent, on a resume run
	Deferred     approvals.BatchID // what this run waits for, when deferred
	Asks         int               // of a remote run: how many of its calls are in Deferred; 0 if an older version deferred it
	Agent        string
	Executor     approvals.Executor // empty: a [Runner]; see [RemoteRequest]
	CallsOnly    bool               // it executes the calls of Parent, a remote run, and asks no model; see [Runner.Execute]
	Requester    approvals.UserID
	Prompt       string            // of a resume run: what goes to the model with the answers, mostly nothing
	Via          string            // the surface at which its message, or that of Parent, was written, if that is not the thread's own
	Instructions string            // that came with the message, for the model after those of the agent
	Supersedes   approvals.BatchID // what the message of this run has ended, see [PendingReject]
	Status       Status
	Activity     []string  // the tools of the current step
	Steps        int       // how many responses the model has given in this run
	From, To     int       // its messages: [From, To) of the thread's list
	Usage        Usage     // of this run and those it resumes, since the person last wrote
	Output       string    // the final answer, at most [MaxOutput] characters and a note, when completed
	Failure      string    // a sentence for people, when failed or parked
	Owner        Fence     // of the worker that has it; empty: none
	LeaseEnds    time.Time // without an owner: no worker has to look before
	CreatedAt    time.Time
	EndedAt      time.Time
	Version      int64 // of this document; 0 before it is stored
}

// Due says when a worker should look at the run next, and whether one should
// at all: at once when it is queued, unless it was put off, and at the end of
// the lease when someone has it.
func (r Run) Due() (at time.Time, ok bool) {
	switch r.Status {
	case RunQueued:
		if r.LeaseEnds.After(r.CreatedAt) {
			return r.LeaseEnds, true
		}
		return r.CreatedAt, true
	case RunRunning:
		return r.LeaseEnds, true
	default:
		return time.Time{}, false
	}
}

// A Fence is a random mark of one worker's claim. It is never reused: a
// counter would roll back with a failover of the store.
type Fence string

// Status says where a run is.
type Status string

// The statuses. RunDeferred, RunMerged, RunCompleted and RunFailed are final.
const (
	RunWaiting   Status = "waiting" // in the thread's queue
	RunQueued    Status = "queued"  // it is its turn; any worker may claim it
	RunRunning   Status = "running"
	RunDeferred  Status = "deferred" // ended with DeferredToolRequests; a resume run follows, or a delivery
	RunMerged    Status = "merged"   // the resume run of what it supersedes has taken up its prompt
	RunCompleted Status = "completed"
	RunFailed    Status = "failed"
	RunParked    Status = "parked" // every attempt failed: people must look; the thread waits
)
