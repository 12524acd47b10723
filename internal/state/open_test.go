package state_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
	"github.com/countersign/countersign/internal/state/statetest"
)

const password = "s3cr3t"

func TestOpenWaitsForRedisAndSaysSo(t *testing.T) {
	t.Parallel()
	addr := statetest.FreeAddr(t)

	var log statetest.Log
	opened := make(chan error, 1)
	go func() {
		s, err := state.Open(t.Context(), state.Options{
			URL: "redis://bot:" + password + "@" + addr + "/0?max_retries=-1", Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	require.Eventually(t, func() bool { return log.String() != "" }, time.Minute, time.Millisecond)
	require.Contains(t, log.String(), "Redis does not answer")
	require.Contains(t, log.String(), "redis://"+addr)
	m := miniredis.NewMiniRedis()
	m.RequireUserAuth("bot", password)
	require.NoError(t, m.StartAddr(addr))
	t.Cleanup(m.Close)
	require.NoError(t, <-opened)
	require.Contains(t, log.String(), "Redis answers")
	require.NotContains(t, log.String(), password)
}

func TestOpenGivesUpWhenItIsToldTo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := state.Open(ctx, state.Options{URL: "redis://x:" + password + "@127.0.0.1:1?max_retries=-1"})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotContains(t, err.Error(), password)
}

func TestOpenOnceFailsWhereNobodyAnswers(t *testing.T) {
	t.Parallel()
	_, err := state.Open(t.Context(), state.Options{URL: "redis://x:" + password + "@127.0.0.1:1?max_retries=-1", Once: true})
	require.ErrorContains(t, err, "redis at redis://127.0.0.1:1 does not answer: ")
	require.NotContains(t, err.Error(), password)
}

func TestOpenRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	m.RequireAuth("another")
	for name, o := range map[string]state.Options{
		"no URL":           {},
		"another scheme":   {URL: "http://x:" + password + "@h"},
		"a bad port":       {URL: "redis://x:" + password + "@h:port"},
		"a bad escape":     {URL: "redis://x:" + password + "%zz@h"},
		"a bad option":     {URL: "redis://x:" + password + "@h?color=red"},
		"a bad cluster":    {URL: "redis://x:" + password + "@h?addr=h:1&color=red"},
		"a bad Sentinel":   {URL: "redis://x:" + password + "@h?master_name=m&color=red"},
		"a brace":          {URL: "redis://h", Prefix: "a{b"},
		"a wrong password": {URL: "redis://:" + password + "@" + m.Addr()},
		"no password":      {URL: "redis://" + m.Addr()},
	} {
		_, err := state.Open(t.Context(), o)
		require.Error(t, err, name)
		require.NotContains(t, err.Error(), password, name)
	}
}

// Passwords that a program made up often have these.
func TestOpenSaysHowToWriteAPasswordInAURL(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"redis://:pa/ss@h:6379", "redis://:pa#ss@h:6379", "redis://:pa?ss@h:6379", "redis://:pa%ss@h:6379"} {
		_, err := state.Dial(url)
		require.ErrorContains(t, err, "in a password write / as %2F, ? as %3F, # as %23 and % as %25", url)
	}
	client, err := state.Dial("redis://:pa%2Fss@h:6379")
	require.NoError(t, err)
	require.NoError(t, client.Close())
}

func TestOpenSpeaksToAClusterByItsSeeds(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	s, err := state.Open(t.Context(), state.Options{URL: "redis://" + m.Addr() + "?addr=" + m.Addr()})
	require.NoError(t, err)
	require.NoError(t, s.CommitMemo(t.Context(), "group-01-x", "people", []byte("x"), 0, 0))
	require.NoError(t, s.Close())
}
