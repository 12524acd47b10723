// Package telemetry measures and traces a process by wrapping its ports: stores, models,
// clients and HTTP handlers. Nothing that is measured knows this package, nothing
// is global, and without a [Metrics] and [Traces] nothing is wrapped.
//
// # Labels
//
// Every label has a bounded number of values. Methods of Slack, commands of Redis,
// kinds of work, outcomes and routes are fixed by the program; agents, models,
// tools and rules are named by the configuration. What comes from further away is
// held by [bounded]: after so many names, further ones are counted as "other".
// No label has an id, a person or an argument.
//
// # What is counted where
//
// Counters count what this process has done: a decision is counted by the replica
// that committed it. A process that dies between a commit and its answer does not
// count it, so the facts in the store are the record and these numbers are for
// graphs and alerts. The gauges of [Backlog] are read from the store, so that every
// replica reports the same.
package telemetry
