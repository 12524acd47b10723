package policy_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/policy"
)

// A mount is a directory as Kubernetes mounts a ConfigMap: the file is a link
// into a directory that is a link that is swapped.
type mount struct {
	t   *testing.T
	dir string
	n   int
}

func (m *mount) write(text string) {
	m.t.Helper()
	m.n++
	version := "..version" + string(rune('0'+m.n))
	require.NoError(m.t, os.Mkdir(filepath.Join(m.dir, version), 0o700))
	require.NoError(m.t, os.WriteFile(filepath.Join(m.dir, version, "policy.yaml"), []byte(text), 0o600))
	require.NoError(m.t, os.Symlink(version, filepath.Join(m.dir, "..next")))
	require.NoError(m.t, os.Rename(filepath.Join(m.dir, "..next"), filepath.Join(m.dir, "..data")))
	if m.n == 1 {
		require.NoError(m.t, os.Symlink("..data/policy.yaml", filepath.Join(m.dir, "policy.yaml")))
	}
}

const (
	allows  = head + "rules:\n  - {name: yes, tools: [x], allow: true}\n"
	refuses = head + "rules:\n  - {name: no, tools: [x], deny: no}\n"
	breaks  = head + "rules:\n  - {name: no, tools: [x], deny: no, alow: true}\n"
)

// The watch reports what it rejects once, and a reload, which someone asked for, each time.
func TestAPolicyIsFollowedAndABrokenOneIsReportedOnce(t *testing.T) {
	for _, path := range []string{"", "policy.yaml"} {
		synctest.Test(t, func(t *testing.T) {
			m := &mount{t: t, dir: t.TempDir()}
			m.write(allows)
			var told []string
			live, err := policy.Open(t.Context(), filepath.Join(m.dir, path), policy.Options{}, func(_ context.Context, old, current *policy.Policy, err error) {
				if err != nil {
					require.Same(t, old, current)
					_, what, _ := strings.Cut(err.Error(), "policy.yaml")
					told = append(told, what)
					return
				}
				told = append(told, strings.Join(old.Rules(), "")+" to "+strings.Join(current.Rules(), ""))
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { live.Watch(ctx, time.Second); close(done) }()
			rules := func() approvals.Ruling {
				time.Sleep(3500 * time.Millisecond) // of the bubble
				synctest.Wait()
				r, err := live.Rule(ctx, call("x", `{}`))
				require.NoError(t, err)
				return r
			}
			require.Equal(t, approvals.Permit{}, unnamed(rules()))
			require.Empty(t, told)

			m.write(refuses)
			require.Equal(t, approvals.Refuse{Reason: "no"}, unnamed(rules()))
			m.write(breaks)
			require.Equal(t, approvals.Refuse{Reason: "no"}, unnamed(rules()), "the one before it stays")
			require.Error(t, live.Reload(ctx))
			m.write(allows)
			require.Equal(t, approvals.Permit{}, unnamed(rules()))
			m.write(breaks)
			require.Equal(t, approvals.Permit{}, unnamed(rules()))
			m.write(allows)
			require.Equal(t, approvals.Permit{}, unnamed(rules()))
			require.NoError(t, live.Reload(ctx))
			require.NoError(t, os.RemoveAll(filepath.Join(m.dir, "..data")))
			require.Equal(t, approvals.Permit{}, unnamed(rules()), "nor does it go with the file")
			require.Error(t, live.Reload(ctx))
			broken := ":7:38: rules[0].alow: there is no such key; did you mean allow?"
			require.Len(t, told, 8)
			require.Equal(t, []string{"yes to no", broken, broken, "no to yes", broken, "yes to yes"}, told[:6], "the last one is there again")
			require.Equal(t, live.Current().Strictest(monday), live.Strictest(monday))
			cancel()
			<-done
		})
	}
	_, err := policy.Open(t.Context(), filepath.Join(t.TempDir(), "none.yaml"), policy.Options{}, nil)
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = policy.Load("/dev/zero", policy.Options{})
	require.ErrorContains(t, err, "has more than 262144 bytes", "no more is read than shows that")
}

// A rule for a tool that is accepted later is rejected until then. When the tool is there, the
// policy on disk is taken with it.
func TestARejectedPolicyIsTakenWithTheToolsThatItNeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "policy.yaml")
		write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
		write(allows)
		var told []string
		one := policy.Options{Tools: []policy.Tool{{Agent: "ops", Name: "x"}}}
		two := policy.Options{Tools: append(one.Tools, policy.Tool{Agent: "ops", Name: "pay"})}
		live, err := policy.Open(t.Context(), path, one, func(_ context.Context, old, current *policy.Policy, err error) {
			if err != nil {
				told = append(told, err.Error())
				return
			}
			told = append(told, strings.Join(old.Rules(), "")+" to "+strings.Join(current.Rules(), ""))
		})
		require.NoError(t, err)
		write(allows + "  - {name: pays, tools: [pay], deny: no}\n  - {name: more, tools: [more], deny: no}\n")
		require.ErrorContains(t, live.Reload(t.Context()), `no agent has a tool "pay"`)
		err = live.Retool(t.Context(), two)
		require.ErrorContains(t, err, `no agent has a tool "more"`)
		require.NotContains(t, err.Error(), `"pay"`)
		require.Len(t, live.Current().Options().Tools, 1)
		require.Len(t, told, 1, "what the tools do not suffice for is the error")

		write(allows + "  - {name: pays, tools: [pay], deny: no}\n")
		require.EqualError(t, live.Retool(t.Context(), two), "the policy is still being written; it is loaded once it stops changing")
		require.Error(t, live.Reload(t.Context()))
		require.NoError(t, live.Retool(t.Context(), two))
		require.Len(t, live.Current().Options().Tools, 2)
		require.Equal(t, "yes to yespays", told[2])
		require.NoError(t, live.Reload(t.Context()))
		require.Len(t, told, 3)
	})
}

func TestADirectoryIsReadAsOneFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	_, err := policy.Load(dir, policy.Options{})
	require.EqualError(t, err, dir+": contains no .yaml file")
	write("10-names.yaml", head)
	write("20-no.yaml", "rules:\n  - {name: no, tools: [x], when: args.a, deny: no}\n")
	write("30-yes.yaml", "rules:\n  - {name: yes, tools: [x], allow: true}\n")
	write("notes.txt", "not read")
	p, err := policy.Load(dir, policy.Options{})
	require.NoError(t, err)
	require.Equal(t, []string{"no", "yes"}, p.Rules())
	people, groups := p.Named()
	require.Equal(t, filepath.Join(dir, "10-names.yaml")+":3:17", people["U0ALICE001"])
	require.Contains(t, groups, approvals.GroupID("C0WARROOM1"))

	write("40-again.yaml", "mode: shadow\n"+head+"rules:\n  - {name: no, tools: [y], deny: no}\n")
	_, err = policy.Load(dir, policy.Options{})
	require.ErrorContains(t, err, "40-again.yaml:8:12: rules[0].name: another rule is already called no")
	require.ErrorContains(t, err, "default: is already set at")
	require.ErrorContains(t, err, "groups.sre: S0SRE00001 is already named sre")
	require.NoError(t, os.Remove(filepath.Join(dir, "40-again.yaml")))
	write("50.yml", "")
	_, err = policy.Load(dir, policy.Options{})
	require.ErrorContains(t, err, "50.yml: is not read")
}
