package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
)

func TestNoFindingQuotesASecret(t *testing.T) {
	c := checker{env: config.Environment{SlackToken: config.NewSecret("tell-no-one")}}
	c.problem("do tell-no-one", "it was tell-no-one")
	require.Equal(t, []Finding{{Mark: IsProblem, Text: "it was [redacted]", Advice: "do [redacted]"}}, c.scrubbed())
}
