// Package slacksim is a Slack workspace on loopback.
package slacksim
