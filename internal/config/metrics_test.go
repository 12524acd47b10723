package config

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatTheListenerForMetricsCannotBeFailsTheStart(t *testing.T) {
	problems := func(m Metrics) error {
		c, found := Decode([]byte("agents:\n  - name: ops\npolicy: p.yaml\nhttp: {listen: ':8090'}\n"))
		require.Empty(t, found)
		c.Metrics = m
		return c.Check()
	}
	for _, good := range []Metrics{{}, {Listen: ":9090"}, {Listen: "127.0.0.1:9090", Pprof: true}, {Listen: "[::1]:9090"}} {
		require.NoError(t, problems(good))
	}
	for want, m := range map[string]Metrics{
		"metrics.listen: not set, so metrics.pprof has no effect": {Pprof: true},
		`but is "9090"`:              {Listen: "9090"},
		`but is ":0"`:                {Listen: ":0"},
		"and so is http.listen":      {Listen: ":8090"},
		`must be an address with a `: {Listen: "localhost"},
	} {
		require.ErrorContains(t, problems(m), want)
	}
}
