package state_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/state/statetest"
)

func TestAnErrorNamesTheOperationAndTheDocumentOnce(t *testing.T) {
	s := openStore(t, statetest.Miniredis(t), newClock().Now)
	desk := approvals.NewDesk(s, nil, nil, newClock().Now)
	id := ids{1}.batch("b")
	_, err := desk.Withdraw(t.Context(), id, "request", approvals.Withdraw{})
	require.EqualError(t, err, "load batch "+string(id)+": not found")
}
