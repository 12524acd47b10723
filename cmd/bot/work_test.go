package main

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slackui/slacksim"
	"github.com/countersign/countersign/internal/state"
)

func TestABotWithoutATaskForSomeKindDoesNotStart(t *testing.T) {
	b := newInstallation(t, slacksim.Config{}).bot()
	all := b.work()
	for i, task := range all {
		_, err := state.NewTasks(slices.Delete(slices.Clone(all), i, i+1)...)
		require.ErrorContains(t, err, string(task.Kind)+" has 0 tasks")
	}
}
