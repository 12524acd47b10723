// Package outbox keeps the messages for the webhooks of remote agents until they are
// delivered.
//
// A message is put into the outbox in the course of what it tells of, and under an
// id that follows from that: put again, it is the same message. It is sent as due
// work, at the times that [webhook.Attempts] gives, so that retries survive the
// process that made them. A message is sent at least once. If a process dies
// between an attempt and its record, or Redis forgets the record in a failover, the
// message is sent again under the same id. Messages have no order.
//
// # What is stored
//
// Beside a request, under the id of its run, is a memo with its messages and what is
// known of the attempts to send each. In every partition one more memo has the
// endpoints of its agents: whether they are disabled, and when they took a message
// last. Both are work of their own ([Surface]): the first is due when a message is,
// the second when people are to be told that an endpoint is disabled. Of an endpoint that
// is disabled in several partitions, the memo of one, its home, says whether they were.
//
// # Disabled endpoints
//
// An endpoint that answers 410, or takes no message during the 75 hours in which one
// is tried, is disabled: nothing is sent to it until [Outbox.Enable]. Its messages
// wait, those that come later too, and none is lost. Then each has the whole
// schedule again.
package outbox
