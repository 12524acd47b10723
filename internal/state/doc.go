// Package state keeps everything in Redis: runs and their messages, batches,
// the journal, facts, what surfaces remember, and the index of what is due.
//
// Every change is one run of one script, commit.lua, which compares the
// versions that it is given and then writes the values that it is given. It has
// no rule of the domain. A change is applied wholly or not at all, and once:
// each carries a request that the script remembers, in a key or in the document, so
// that a change whose reply was lost can be sent again, and the client does so on its
// own. What may be applied twice is not remembered.
//
// Work is derived from the documents, in the same step that stores them: a run
// that is queued is due in [Runs], a batch that changed in [Cards], a batch
// whose people are to be notified in [Notices], and so on. Nobody enqueues
// anything. [Due] hands out what is due, at once after a commit that wakes it. In case
// a wake-up was lost, sweeps ask each partition for all kinds at once, with sweep.lua:
// every 2 s, or every 25 s while messages that the sweeps publish show that wake-ups
// arrive.
//
// # Keys
//
// All begin with the prefix and the partition, countersign:{p17}:, which is
// their hash tag: a partition is in one slot, so that one script may touch all
// of it. Redis does not roll back a script that fails half way, so every key
// has one type for ever, which keys.go holds by the type of the key in Go.
//
//	key                      type    content                                  written by
//	thread:<id>              hash    v version, d document, q the last        Commit
//	                                 changes, r:<run> for each of its runs
//	messages:<thread>        list    messages in PydanticAI's form, some      Commit, append only
//	                                 without the arguments of their calls
//	run:<id>                 hash    v, d, q, o owner's fence                 Commit
//	journal:<run>            hash    v:<call>, d:<call> for each entry        Commit
//	batch:<id>               hash    v, d, r its first requests               Commit, CommitBatch
//	args:<batch>:<digest>    string  the exact bytes of arguments             Commit, CommitBatch, once
//	idle                     zset    threads in which nothing is open, by     Commit; Retention
//	                                 since when
//	parkedruns               zset    runs that people must look at, by when   Commit
//	list                     zset    <list>, when it was opened and <batch>,  Commit, CommitBatch
//	                                 for each list that a batch is on, see
//	                                 approvals.ListKey
//	decided:<user>           zset    batches with a decision of theirs, by    Commit, CommitBatch
//	                                 when; the last 50 or so of the partition
//	sheet:<id>               hash    v, d, s seal of its lines                CommitSheet; kept a day if nobody
//	                                                                          submits it, and 30 days once it is
//	                                                                          finished
//	ledger:<user>            hash    v, d calls that went ahead for them, q   Enter, Leave; kept two days after
//	                                                                          the last
//	facts                    stream  e event, or an array of those of a       Commit, CommitBatch, append only
//	                                 change
//	memo:<surface>:<id>      hash    v, d what a surface keeps, p:<name> for  CommitMemo, ChangeMemo,
//	                                 each of its parts, q                     CommitTimed, Commit
//	due                      zset    <kind> and id, by kind and when to look  all commits, Due
//	attempts                 hash    <kind>|<id>: failures so far             Due; commits delete
//	parked                   hash    <kind>|<id>: reason, attempts, since     Due; commits delete
//	layout                   string  the number of partitions, and how these  LayOut
//	                                 are laid out; in the first one only
//	request:<scope>:<id>     string  that a request was applied which no      the script; 10 minutes or Keep,
//	                                 document remembers                       of an open batch its deadline
//
// Requests, sheets, ledgers and the memos that stay of removed runs are the only keys
// with a TTL. What belongs to a thread is removed with it, by [Retention].
//
// index.go says how members of list, decided and due are written: they are short, and those
// of a list are in the order in which its batches were opened. Older versions have a key for
// each list and each kind of due work, list:<list> and due:<kind>, with members that are
// plain text. A store of theirs keeps that layout, so that replicas of both versions can work
// on it, until [Store.Convert]. Processes that work in that layout listen on the channel
// <prefix>:wakes:apart, so that Convert hears of them.
//
// The channel <prefix>:wakes carries the partition in which there is work, and its
// kinds; [Cards] wakes those who follow a [Feed], too. A message without a kind is that
// of a sweep. The store that made the change is named if its process works on what is
// due, and for a moment others leave the work to it. A sweep is named too: a process that
// hears no other one for a while does not ask whether others did its work.
//
// Documents are JSON with a schema of their own, see codec.go. Documents of
// every schema that was ever written decode for ever; testdata keeps them.
//
// Documents, messages, arguments and facts of 128 bytes or more are stored packed,
// see packed.go. What was stored before they were is read as it is. Of what surfaces
// remember, only the memos beside a request are packed. A message does not have the
// arguments that its batch has, see messages.go. Stores with the layout of older versions
// have neither.
//
// # What it counts on
//
// Redis 6.2 or newer with maxmemory-policy noeviction, set to keep what the
// [Durability] of the store says; [Servers] tells what it is set to. The scripts
// behave the same on miniredis, which the demo and the tests use.
//
// Commits of people's words and of runs are answered once they are that durable:
// behind them, in their pipeline, the server is asked with WAITAOF and WAIT. What
// surfaces and the due index keep is not waited for, because it can be made
// again.
//
// # One package
//
// All files share the typed keys, the stored forms and the commit script, and one
// commit often writes documents of several of them. What has a reader or a cycle
// of its own has a type of its own: [Due], [Feed], [Ledger], [Browser], [Retention].
package state
