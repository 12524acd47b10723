//go:build !race

package approvals_test

const raced = false
