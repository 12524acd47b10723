// Package directory looks up who a person is, which groups they are in, for whom
// they stand in, what they may read and what waits for them. Answers of Slack are
// remembered for a short time. A lookup that fails is an error: nothing is
// assumed instead.
package directory
