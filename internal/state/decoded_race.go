//go:build race

package state

// checksShared has every shared document compared with what is stored. Programs that are
// built with the race detector, such as the tests, do that.
const checksShared = true
