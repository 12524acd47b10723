package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

func TestADirectoryThatLacksADenyForAMomentIsNotTaken(t *testing.T) {
	for _, by := range []string{"watch", "signal"} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			deny := filepath.Join(dir, "20-no.yaml")
			write := func(path, text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
			write(filepath.Join(dir, "10.yaml"), allows)
			write(deny, "rules:\n  - {name: no, tools: [x], when: args.a, deny: no}\n")
			changes := 0
			live, err := policy.Open(t.Context(), dir, policy.Options{}, func(_ context.Context, before, after *policy.Policy, err error) {
				require.NoError(t, err)
				changes++
				require.Equal(t, []string{"no"}, policy.Lifted(before, after))
				require.Empty(t, policy.Lifted(after, before))
			})
			require.NoError(t, err)
			rules := func() approvals.Ruling {
				r, err := live.Rule(t.Context(), call("x", `{"a":true}`))
				require.NoError(t, err)
				return r
			}
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				if by == "watch" {
					live.Watch(ctx, 400*time.Millisecond)
				} else {
					_ = live.Reload(ctx)
				}
				close(done)
			}()
			synctest.Wait()
			require.NoError(t, os.Remove(deny))
			if by == "signal" {
				<-done
				done = make(chan struct{})
				go func() { _ = live.Reload(ctx); close(done) }() // what came of it is counted
			}
			time.Sleep(450 * time.Millisecond) // of the bubble; one look saw it
			require.Equal(t, approvals.Refuse{Reason: "no"}, unnamed(rules()))
			write(deny, "rules:\n  - {name: no, tools: [x], when: args.a, deny: no}\n")
			time.Sleep(time.Second)
			require.Equal(t, approvals.Refuse{Reason: "no"}, unnamed(rules()))
			require.Zero(t, changes)

			require.NoError(t, os.Remove(deny))
			if by == "signal" {
				<-done
				require.NoError(t, live.Reload(ctx))
			}
			time.Sleep(time.Second)
			require.Equal(t, approvals.Permit{}, unnamed(rules()), "what stays is taken")
			require.Equal(t, 1, changes)
			cancel()
			<-done
		})
	}
}

func TestAStartWaitsForADirectoryThatIsBeingWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		write := func(name, text string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		}
		write("10.yaml", allows)
		go func() {
			time.Sleep(100 * time.Millisecond)
			write("20-no.yaml", "rules:\n  - {name: no, tools: [x], when: args.a, deny: no}\n")
		}()
		live, err := policy.Open(t.Context(), dir, policy.Options{}, nil)
		require.NoError(t, err)
		require.Equal(t, []string{"yes", "no"}, live.Current().Rules())

		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = policy.Open(ctx, dir, policy.Options{}, nil)
		require.ErrorIs(t, err, context.Canceled)
	})
}

// A policy that nobody has written lately is taken at the first look: a start need not wait.
func TestAStartWaitsOnlyForAPolicyThatWasWrittenLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "10.yaml")
		require.NoError(t, os.WriteFile(file, []byte(allows), 0o600))
		waits := func(path string) bool {
			began := time.Now()
			_, err := policy.Open(t.Context(), path, policy.Options{}, nil)
			require.NoError(t, err)
			return time.Since(began) > 0
		}
		for _, lately := range []string{"", file, dir} {
			for _, at := range []string{file, dir} {
				written := time.Now()
				if at != lately {
					written = written.Add(-time.Hour)
				}
				require.NoError(t, os.Chtimes(at, time.Time{}, written))
			}
			require.Equal(t, lately != "", waits(dir), lately)
			require.Equal(t, lately == file, waits(file), lately)
		}
	})
}

func TestADirectoryThatNeverStaysIsNotTakenBySignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "p.yaml")
		require.NoError(t, os.WriteFile(path, []byte(refuses), 0o600))
		var told []error
		live, err := policy.Open(t.Context(), path, policy.Options{}, func(_ context.Context, _, _ *policy.Policy, err error) { told = append(told, err) })
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		text := allows
		go func() {
			for ctx.Err() == nil {
				text += "# more\n"
				_ = os.WriteFile(path, []byte(text), 0o600)
				time.Sleep(200 * time.Millisecond)
			}
		}()
		synctest.Wait()
		require.EqualError(t, live.Reload(ctx), "the policy is still being written; it is loaded once it stops changing")
		require.Len(t, told, 1)
		require.Equal(t, []string{"no"}, live.Current().Rules())
		cancel()
		synctest.Wait()
		time.Sleep(time.Second) // until nobody writes
		require.ErrorIs(t, live.Reload(ctx), context.Canceled)
		require.NoError(t, live.Reload(t.Context()))
		require.Equal(t, []string{"yes"}, live.Current().Rules(), "what stays now is taken")
	})
}

func TestARuleThatIsTriedOnlyIsGone(t *testing.T) {
	rules := "rules:\n  - {name: a, tools: [a], deny: no}\n  - {name: b, tools: [b], ask: {why: b}}\n  - {name: c, tools: [c], allow: true}\n"
	before := parse(t, rules, policy.Options{})
	require.Equal(t, []string{"a", "b"}, policy.Lifted(before, parse(t, "mode: shadow\n"+rules, policy.Options{})))
	require.Equal(t, []string{"a", "b"}, policy.Lifted(before, parse(t, "rules:\n  - {name: a, mode: shadow, tools: [a], deny: no}\n  - {name: b, tools: [b], allow: true}\n", policy.Options{})))
}
