// Package reply shows a run in its Slack thread: one message, edited in place, that
// says what the agent does, waits for or has answered.
package reply
