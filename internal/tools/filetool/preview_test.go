package filetool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools/filetool"
)

// previewed returns what the tool says that the call would change.
func previewed(t *testing.T, folder, tool, args string) (agentrun.Preview, agentrun.Tool, agentrun.Call) {
	t.Helper()
	x, c := toolOf(t, folder, tool, args)
	p, err := x.Spec().Preview.Compute(t.Context(), c)
	require.NoError(t, err)
	c.Precondition = p.Precondition
	return p, x, c
}

func put(t *testing.T, folder, path, content string) time.Time {
	t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	require.NoError(t, os.WriteFile(filepath.Join(folder, path), []byte(content), 0o600))
	require.NoError(t, os.Chtimes(filepath.Join(folder, path), at, at))
	return at
}

// facts without the zones of their times.
func facts(p agentrun.Preview) []approvals.Fact {
	for i := range p.Facts {
		if !p.Facts[i].At.IsZero() {
			p.Facts[i].At = p.Facts[i].At.UTC()
		}
	}
	return p.Facts
}

func TestThePreviewOfADeletionSaysSizeAndLastChange(t *testing.T) {
	folder, _ := open(t)
	at := put(t, folder, "big.txt", strings.Repeat("x", 4200))
	p, _, _ := previewed(t, folder, "delete_file", args(t, "big.txt"))
	require.Equal(t, []approvals.Fact{{Label: "Size", Value: "4.2 KB"}, {Label: "Last changed", At: at}}, facts(p))
	require.Empty(t, p.Content)

	p, _, _ = previewed(t, folder, "delete_file", args(t, "not/there"))
	require.Equal(t, []approvals.Fact{{Label: "File", Value: "there is none"}}, p.Facts)
}

func TestThePreviewOfAWriteComparesTheTexts(t *testing.T) {
	folder, _ := open(t)
	at := put(t, folder, "a.txt", "one\ntwo\nthree\n")
	p, _, _ := previewed(t, folder, "write_file", `{"path":"a.txt","content":"one\n2\nthree\nfour"}`)
	require.Equal(t, []approvals.Fact{
		{Label: "Lines added", Value: "2"},
		{Label: "Lines removed", Value: "1"},
		{Label: "Size now", Value: "14 bytes"},
		{Label: "Size then", Value: "16 bytes"},
		{Label: "Last changed", At: at},
	}, facts(p))
	require.Equal(t, "--- now\n+++ then\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n\\ No newline at end of file\n", p.Content)

	p, _, _ = previewed(t, folder, "write_file", `{"path":"x/new.txt","content":"a\nb\n"}`)
	require.Equal(t, []approvals.Fact{
		{Label: "Lines added", Value: "2"}, {Label: "Lines removed", Value: "0"}, {Label: "File", Value: "new"},
	}, p.Facts)
	require.Equal(t, "--- now\n+++ then\n@@ -0,0 +1,2 @@\n+a\n+b\n", p.Content)
	require.NoDirExists(t, filepath.Join(folder, "x"), "it only looks")
}

// What read_file would not return is not in a preview either.
func TestWhatCannotBeReadAsTextIsNotCompared(t *testing.T) {
	folder, _ := open(t)
	for name, content := range map[string]string{"binary": "\xff\xfe", "long": strings.Repeat("x", 64<<10+1)} {
		put(t, folder, name, content)
		p, _, _ := previewed(t, folder, "write_file", writing(t, name))
		require.Empty(t, p.Content)
		require.Len(t, p.Facts, 3)
		require.Equal(t, "Size now", p.Facts[0].Label)
	}
	put(t, folder, "short", "x\n")
	p, _, _ := previewed(t, folder, "write_file", fmt.Sprintf(`{"path":"short","content":%q}`, strings.Repeat("x\n", 128<<10+1)))
	require.Empty(t, p.Content, "nor what is too long to be compared")
}

func TestAPreviewOfAFileAmountsToReadingIt(t *testing.T) {
	folder, _ := open(t)
	for tool, raw := range map[string]string{"write_file": `{"path":"a/b","content":"secret"}`, "delete_file": `{"path":"a/b"}`} {
		x, c := toolOf(t, folder, tool, raw)
		reads, err := x.Spec().Preview.Reads(c)
		require.NoError(t, err)
		require.Equal(t, approvals.ToolCall{Name: "read_file", Args: json.RawMessage(`{"path":"a/b"}`)}, reads)
		require.True(t, x.Spec().Preview.Checks)
	}
}

func TestAPreviewStopsWhenItIsToldTo(t *testing.T) {
	folder, _ := open(t)
	put(t, folder, "a", "x")
	x, c := toolOf(t, folder, "delete_file", args(t, "a"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := x.Spec().Preview.Compute(ctx, c)
	require.ErrorIs(t, err, context.Canceled)
}

// Whatever became of the file since people saw it: it is not touched, unless it
// is still what they saw.
func TestAFileThatIsNotWhatPeopleSawIsNotTouched(t *testing.T) {
	for name, c := range map[string]struct {
		before string // empty: there is none
		change func(t *testing.T, path string)
		acts   map[string]bool // by tool
	}{
		"nothing":              {"old", func(*testing.T, string) {}, map[string]bool{"write_file": true, "delete_file": true}},
		"touched":              {"old", func(t *testing.T, p string) { t.Helper(); require.NoError(t, os.Chtimes(p, time.Now(), time.Now())) }, map[string]bool{"write_file": true, "delete_file": true}},
		"other content":        {"old", func(t *testing.T, p string) { t.Helper(); require.NoError(t, os.WriteFile(p, []byte("new"), 0o600)) }, nil},
		"longer":               {"old", func(t *testing.T, p string) { t.Helper(); require.NoError(t, os.WriteFile(p, []byte("old "), 0o600)) }, nil},
		"gone":                 {"old", func(t *testing.T, p string) { t.Helper(); require.NoError(t, os.Remove(p)) }, nil},
		"gone with its folder": {"old", func(t *testing.T, p string) { t.Helper(); require.NoError(t, os.RemoveAll(filepath.Dir(p))) }, nil},
		"another file of the same content": {"old", func(t *testing.T, p string) {
			t.Helper()
			require.NoError(t, os.WriteFile(p+".new", []byte("old"), 0o600)) // while the other is there, for an inode of its own
			require.NoError(t, os.Rename(p+".new", p))
		}, map[string]bool{"write_file": true}},
		"it is there by now": {"", func(t *testing.T, p string) {
			t.Helper()
			require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o750))
			require.NoError(t, os.WriteFile(p, nil, 0o600))
		}, nil},
	} {
		for _, tool := range []string{"write_file", "delete_file"} {
			t.Run(name+", "+tool, func(t *testing.T) {
				folder, _ := open(t)
				path := filepath.Join(folder, "d", "a.txt")
				if c.before != "" {
					require.NoError(t, os.Mkdir(filepath.Dir(path), 0o750))
					require.NoError(t, os.WriteFile(path, []byte(c.before), 0o600))
				}
				raw := args(t, "d/a.txt")
				if tool == "write_file" {
					raw = writing(t, "d/a.txt")
				}
				_, x, call := previewed(t, folder, tool, raw)
				c.change(t, path)
				was, missing := os.ReadFile(path)
				_, err := x.Execute(t.Context(), call)
				if c.acts[tool] {
					require.NoError(t, err)
					return
				}
				var failed *agentrun.PreconditionFailed
				require.ErrorAs(t, err, &failed)
				is, err := os.ReadFile(path)
				require.Equal(t, missing == nil, err == nil, "nothing is made, and nothing removed")
				require.Equal(t, string(was), string(is))
				if name == "gone with its folder" {
					require.NoDirExists(t, filepath.Dir(path))
				}
			})
		}
	}
}

func TestAFileThatPeopleSawIsMissingIsMade(t *testing.T) {
	folder, _ := open(t)
	_, x, c := previewed(t, folder, "write_file", writing(t, "x/y/new.txt"))
	_, err := x.Execute(t.Context(), c)
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(folder, "x", "y", "new.txt"))

	_, x, c = previewed(t, folder, "delete_file", args(t, "nowhere"))
	_, err = x.Execute(t.Context(), c)
	require.Equal(t, "There is no file nowhere.", failure(t, err), "as people were told")
}

// What is shorter than what was there leaves nothing of it.
func TestAWriteReplacesTheWholeFile(t *testing.T) {
	folder, _ := open(t)
	put(t, folder, "a", strings.Repeat("long ", 100))
	_, x, c := previewed(t, folder, "write_file", `{"path":"a","content":"short"}`)
	_, err := x.Execute(t.Context(), c)
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(folder, "a"))
	require.NoError(t, err)
	require.Equal(t, "short", string(b))
}

// Something takes the place of the file while it is compared.
func TestAFileIsComparedWhileItIsOpen(t *testing.T) {
	folder, _ := open(t)
	put(t, folder, "a", "old")
	_, x, c := previewed(t, folder, "delete_file", args(t, "a"))
	looks := 0
	filetool.Meanwhile(t, func(at string) {
		if looks++; at == "a" && looks == 5 { // after it was read, and before it is removed
			require.NoError(t, os.Rename(filepath.Join(folder, "a"), filepath.Join(folder, "own")))
			put(t, folder, "a", "new")
		}
	})
	_, err := x.Execute(t.Context(), c)
	require.Equal(t, "a changed while it was being opened. Nothing was done.", failure(t, err))
	b, err := os.ReadFile(filepath.Join(folder, "a"))
	require.NoError(t, err)
	require.Equal(t, "new", string(b))
}

// The file is moved away while it is compared with what people saw. It has
// another path then, on which the policy has not ruled.
func TestAFileThatIsMovedAwayMeanwhileIsNotWritten(t *testing.T) {
	const steps = 3
	for name, elsewhere := range map[string]func(t *testing.T, from, to string){
		"renamed": func(t *testing.T, from, to string) {
			t.Helper()
			require.NoError(t, os.Rename(from, to))
			require.NoError(t, os.WriteFile(from, []byte("decoy"), 0o600))
		},
		"linked": func(t *testing.T, from, to string) {
			t.Helper()
			require.NoError(t, os.Link(from, to))
		},
	} {
		for _, seen := range []bool{true, false} {
			t.Run(fmt.Sprint(name, seen), func(t *testing.T) {
				folder, _ := open(t)
				put(t, folder, "plan.txt", "old")
				_, x, c := previewed(t, folder, "write_file", `{"path":"plan.txt","content":"new"}`)
				if !seen {
					c.Precondition = nil
				}
				from, to, looks := filepath.Join(folder, "plan.txt"), filepath.Join(folder, "payroll.txt"), 0
				filetool.Meanwhile(t, func(at string) {
					if at == "plan.txt" {
						if looks++; looks == steps { // it is open, and was found to be the entry
							elsewhere(t, from, to)
						}
					}
				})
				_, err := x.Execute(t.Context(), c)
				require.Error(t, err)
				b, readErr := os.ReadFile(to)
				require.NoError(t, readErr)
				require.Equal(t, "old", string(b))
			})
		}
	}
}
