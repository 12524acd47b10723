package config

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
)

const withSummaries = `agents:
  - name: ops
    files: files
    tools:
      delete_file: {summary: 'Delete {args.path}'}
      write_file:
        summary: Write {args.path} ({bytes args.content})
policy: policy.yaml
`

func readText(t *testing.T, text string) (Config, error) {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "files"), 0o750))
	path := filepath.Join(dir, "c.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return Read(path)
}

func TestTheSummariesOfTheFileReachTheAgent(t *testing.T) {
	c, err := readText(t, withSummaries)
	require.NoError(t, err)
	_, err = NewToolSets(c, Environment{}, nil)
	require.NoError(t, err)
	require.Equal(t, map[string]string{
		"delete_file": "Delete {args.path}", "write_file": "Write {args.path} ({bytes args.content})",
	}, c.Agents[0].Summaries())
}

// A summary that cannot be shown fails the start, with its line.
func TestASummaryThatDoesNotFitItsToolFailsTheStart(t *testing.T) {
	for old, c := range map[string][2]string{
		"Delete {args.path}":                       {"Delete {args.path", "c.yaml: [5:30] agents[0].tools.delete_file.summary: column 8: the { is not closed; add }, or write {{ for a literal brace"},
		"Write {args.path} ({bytes args.content})": {"Write {args.file}", "c.yaml: [7:18] agents[0].tools.write_file.summary: does not fit the tool: column 8: args.file: there is no such argument; args has content, path"},
		"'Delete {args.path}'":                     {"7", "c.yaml: [5:30] agents[0].tools.delete_file.summary: must be text, not a number; put it in quotes"},
	} {
		read, err := readText(t, strings.Replace(withSummaries, old, c[0], 1))
		if err == nil {
			_, err = NewToolSets(read, Environment{}, nil)
		}
		require.ErrorContains(t, err, c[1])
	}
}

// A tool may have been made without the check of tools.New.
func TestTheSummaryOfAToolIsCheckedWhereverItIsFrom(t *testing.T) {
	_, err := NewToolSets(Config{Agents: []Agent{{Name: "ops"}}}, Environment{}, func(string) ([]agentrun.Tool, error) {
		return []agentrun.Tool{bare{agentrun.Spec{Name: "pay", Summary: "Pay {args.who} {args.token}", Schema: []byte(
			`{"type":"object","required":["who","token"],"properties":{"who":{"type":"string"},"token":{"type":"string"}}}`,
		), WriteOnly: []string{"/token"}}}}, nil
	})
	require.EqualError(t, err, "agent ops: the summary of the tool pay: column 17: args.token: it is write-only, or contains something that is, so it can't be shown; leave it out")
}

type bare struct{ spec agentrun.Spec }

func (b bare) Spec() agentrun.Spec                         { return b.spec }
func (bare) Validate(context.Context, agentrun.Call) error { return nil }
func (bare) Execute(context.Context, agentrun.Call) (agentrun.Result, error) {
	return agentrun.Result{}, nil
}
