package main

import (
	"bufio"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/config"
)

// A bot goes on while nobody reads its log. What was left out then is counted in it.
func TestALogThatNobodyReadsHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		l := newLogWriter(w, config.Environment{LogFormat: "json"})
		defer close(l.records)
		log := config.Environment{LogFormat: "json"}.NewLogger(l)

		began := time.Now()
		for range 10 {
			log.Info("held up")
		}
		require.Equal(t, logPatience, time.Since(began), "only the first record waits")

		lines := bufio.NewScanner(r)
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "held up", "the first one was on its way")
		synctest.Wait()
		go log.Info("read again")
		require.True(t, lines.Scan())
		require.Regexp(t, `"msg":"nobody read the log, and records were left out","records":9}$`, lines.Text())
		require.True(t, lines.Scan())
		require.Contains(t, lines.Text(), "read again")
		require.NoError(t, w.Close())
	})
}
