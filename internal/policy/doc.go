// Package policy reads who must approve what, and rules by it.
//
// A policy is one YAML file, or a directory of *.yaml that are read in the
// order of their names as one. A complete one, with its tools, people and calls,
// is in examples/company. Every key is enforced, and whatever is not understood,
// says nothing, or could not work is refused with its place: see [Load].
//
//	zone: Europe/Berlin                          # whose midnight begins what conditions call today; left out: UTC
//	mode: enforce                                # or shadow: nothing of the file but its default is enforced
//	groups:    {sre: S0123456789, war-room: C0123456789}   # user groups and channels; the rest uses the names
//	people:    {carol: U0123456789}
//	managers:  {alice: carol}                    # the role manager is the manager of the requester
//	roles:     {lead: {people: [carol], groups: [sre], channels: [war-room]}}
//	calendars: {office: {zone: Europe/Berlin, days: [mon, tue], from: "09:00", to: "17:30", holidays: ["2026-12-25"]}}
//	default:   {quorums: [...]}                  # the ask of calls that no rule names; see ask
//	rules:
//	  - name: no-drops                           # letters, digits, - _ and .; rulings carry it
//	    mode: enforce                            # or shadow: it is reported what it would rule
//	    tools: ["drop_*"]                        # patterns: * ? [ab]; left out: every tool
//	    agents: [ops]                            # left out: every agent
//	    channels: [war-room]                     # where it was asked; left out: everywhere
//	    requesters: {people: [carol], groups: [sre]}   # who asked; left out: anyone
//	    command: {forms: [{run: git status, flags: [--short]}]}   # of which a shell command consists; see package shellcmd
//	    when: args.database.startsWith("prod")   # a condition; left out: always
//	    summary: Drop {args.database}            # with ask: what the call does, see package summary
//	    check: fraud                             # with allow and ask: a service that may be stricter; see below
//	    deny: Why, in words for the model.       # or allow: true, or ask: {...}
//	examples: [...]
//
// # Which rule decides
//
// A deny that matches wins, wherever it stands. Otherwise the first allow or ask
// that matches decides. An allow never lets through what the tool itself wants
// approved. Behind the rules of the file come those of the bot's configuration:
// the approval of the tool, else that of its agent, else what the tool's code
// says. What none of them names asks with default.
//
// A rule that cannot be judged, because an argument is missing, the groups of
// the requester cannot be looked up, there is no manager, its check does not answer,
// or it takes too long,
// makes the call ask with every quorum of the file, unless a deny matches. No
// argument appears in what is said of it.
//
// # Checks
//
// A rule that allows or asks can name a check, a service that is asked about every
// call for which the rule decides, whenever the policy rules on it. ok follows the
// rule. ask keeps every allow from deciding, so that another rule asks, or the
// default. deny refuses the call. If there is no answer, the rule could not be
// judged. The engine knows checks as a [Checker] only; rules in shadow mode,
// examples and [Replay] ask none.
//
// # What is asked
//
//	ask:
//	  why: A deleted file cannot be brought back.   # for the approvers
//	  quorums:                                   # all of them; one person fills one place
//	    - {name: operations, need: 2, from: {groups: [sre]}}   # need is 1 if left out
//	    - any:                                   # one of these
//	        - {name: security, from: {people: [carol]}}
//	        - all: [{name: leads, need: 2, from: {roles: [lead]}}, {name: room, from: {channel: here}}]
//	      stage: 2                               # asked when the stages before are met; 1 if left out
//	  denials: 1                                 # so many people settle it as denied
//	  veto: [{name: security, from: {people: [carol]}}]   # denials of these settle it too
//	  within: 8h                                 # until the deadline; that of default if left out, there 24h
//	  claim_within: 15m                          # how long the decision waits for a remote agent
//	  hours: office                              # the times of this ask count in these hours only
//	  remind: [2h, 6h]                           # after it was asked
//	  escalate: [{after: 4h, quorum: operations, add: {roles: [manager]}, channel: war-room}]
//	  requester_may_approve: false
//	  participants_may_approve: false            # whether others whose words the agent was sent approve
//	  editor_may_approve: false
//	  delegates: false                           # whether delegates of people who are away approve
//	  reason: optional                           # or required
//	  dm: true                                   # direct messages to everyone who can help; false: to nobody; left out: to those outside the conversation
//	  fragile: false                             # true accepts that one missing person stops it
//
// People who may approve are named by from: people, groups, roles, channels
// (their members), and channel: here (those of the channel where it was asked;
// only in a rule with channels, since the requester chooses it). An ask without
// quorums is default with another why.
//
// # Conditions
//
// A condition is CEL (https://cel.dev) and sees:
//
//	tool, agent                  text
//	call.cwd, .repository and .branch   where a call of a remote agent would run, in its words; empty if it did not say
//	args                         the arguments, by the tool's schema; args.?x.orValue(0) for what may be missing
//	annotations.readOnlyHint     and destructiveHint, idempotentHint, openWorldHint, as in MCP; what is left out is its default there
//	requester.id, .name          .name is empty for people whom the file does not name
//	requester.groups             those of the file's groups in which they are, by name
//	channel.id, channel.name
//	today.executed               by tool: how many calls went ahead for the requester today, before this one
//	hours.office                 whether the call is made within the hours of this calendar
//	now                          now.getHours("Europe/Berlin")
//	run.steps                    how often the model has answered
//	run.executed, .failed, .denied   by tool: run.executed["refund"]; 0 for one that was not called
//	                             (calls of one answer that are let through count for those after them)
//	severity                     low, high, irreversible, or empty: what the tool states
//	gate                         declared, predicate, raised, or empty: why the tool itself asks for approval
//
// It is type-checked when the file is read, against the schema of every tool
// that its rule is for; so name them under tools. Whole numbers are exact, and
// numbers of all types compare. What a call may leave out is looked at behind
// has(args.x) && or as args.?x. A text that is compared with a name (a tool, an
// agent, a group, a value of an enum) must be one. A condition that contradicts
// itself about one expression is refused. Groups are looked up one by one as
// they are looked for; a condition that counts or lists them looks up all.
//
// # Examples
//
// Examples are judged when the file is read, in shadow mode too:
//
//	examples:
//	  - name: a drop in production is refused
//	    call: {tool: drop_database, args: {database: prod-1}}
//	    agent: ops                               # left out: the agent that has the tool
//	    requester: alice
//	    groups: [sre]                            # of the requester; else those of the roster, else none
//	    channel: war-room
//	    at: "2026-03-02T09:30:00+01:00"
//	    gate: raised                             # declared for a tool that always asks, else none
//	    so_far: {steps: 2, executed: {refund: 1}, failed: {}, denied: {}}
//	    check: ask                               # what the check of the rule answers: ok, ask or deny; ok if left out
//	    expect: {deny: no-drops}                 # or {allow: rule}, {ask: rule}, {ask: default}
//
// # What cannot work
//
// With a [Roster], and without one for people who are named, it is refused what
// nobody could approve: an ask that is not met even if everyone approves, in any of
// its ways; one that one missing person stops, unless fragile says so; more
// denials or a larger veto than there are people; an escalation that adds nobody.
// So is what says nothing: a veto of people whose denial is enough anyway, a role
// or calendar that nothing uses, a rule that never matches, or behind one that decides
// all of its calls; a reminder after the deadline.
//
// # One package
//
// Reading and ruling are one package: both work on the same compiled rules, asks
// and names, and what the reader refuses follows from how the engine rules.
package policy
