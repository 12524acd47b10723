// Package blockkit writes text for Slack: rich text, arguments as they are
// stored, Markdown of a model, numbers and lists. It is the only package that
// makes mrkdwn: a [Mrkdwn] is made of constants of our source code, numbers,
// dates and checked ids, so text of models and people does not compile as one.
// It is pure.
package blockkit
