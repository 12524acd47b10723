// Package slackapi makes the few Slack calls that Countersign makes, says what went
// wrong in terms that callers can branch on, and leaves Slack alone when it asks
// for that.
package slackapi
