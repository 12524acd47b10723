//go:build !race

package state

// checksShared is for tests.
const checksShared = false
