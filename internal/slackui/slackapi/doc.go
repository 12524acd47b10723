// Package slackapi makes the few Slack calls that Countersign needs. Its errors
// are such that callers can branch on them, and it does not call Slack while Slack
// limits the call. While Slack answers no call, it makes a few now and then, and those that
// people wait for first.
package slackapi
