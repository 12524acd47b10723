// Package directory knows who somebody is, which groups they are in, for whom they
// stand in, what they may read and what waits for them, as Slack and the store
// said a moment ago. What it cannot find out it does not guess.
package directory
