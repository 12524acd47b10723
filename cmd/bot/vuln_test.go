package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The look for known vulnerabilities fails if one is called, and only then:
// not everyone can reach the database of vulnerabilities.
func TestVulnerabilitiesFailTheCIAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool string // what stands in for govulncheck
		want string
		fail bool
	}{
		"none":               {"exit 0", "vuln: the program calls nothing that is known to be vulnerable\n", false},
		"one that is called": {"echo 'Vulnerability #1: GO-2026-0001'; exit 3", "Vulnerability #1: GO-2026-0001\n", true},
		"no database": {
			"echo; echo 'fetching vulnerabilities: no such host' >&2; exit 1",
			"vuln: not checked: fetching vulnerabilities: no such host\n", false,
		},
		"too slow": {"exec sleep 60", "vuln: not checked: govulncheck took longer than 1 s\n", false},
	} {
		t.Run(name, func(t *testing.T) {
			tool := filepath.Join(t.TempDir(), "govulncheck")
			require.NoError(t, os.WriteFile(tool, []byte("#!/bin/sh\n"+c.tool+"\n"), 0o700))
			cmd := exec.CommandContext(t.Context(), "../../.ci/vuln")
			cmd.Env = append(os.Environ(), "GOVULNCHECK="+tool, "VULN_TIMEOUT=1")
			out, err := cmd.CombinedOutput()
			require.Equal(t, c.want, string(out))
			require.Equal(t, c.fail, err != nil)
		})
	}
	reached := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(reached, "curl"), []byte("#!/bin/sh\n"), 0o700))
	for name, c := range map[string]struct{ env, want string }{
		"no tool": {
			"PATH=" + reached + ":" + os.Getenv("PATH"),
			`^vuln: not checked: govulncheck v\S+ cannot be installed: .+\n$`,
		},
		"no database, and no tool": {"https_proxy=127.0.0.1:1", `^vuln: not checked: curl: .+\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "../../.ci/vuln")
			cmd.Env = append(os.Environ(), "GOVULNCHECK=", "GOPROXY=off", "GOFLAGS=-mod=mod", "GOMODCACHE="+t.TempDir(), c.env)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Regexp(t, c.want, string(out))
		})
	}
}
