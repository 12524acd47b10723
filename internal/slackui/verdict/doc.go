// Package verdict says what people have decided about a call: how far each of its
// quorums is, how it ended, and what they wrote. It is pure.
package verdict
