package filetool_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools/filetool"
)

func open(t *testing.T) (folder string, do func(tool, args string) (string, error)) {
	t.Helper()
	outside := t.TempDir()
	folder = filepath.Join(outside, "folder")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "reports"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret.txt"), []byte("secret"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "reports", "old.txt"), []byte("old"), 0o600))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret.txt"), filepath.Join(folder, "link.txt")))
	set, err := filetool.New(folder)
	require.NoError(t, err)
	return folder, func(tool, args string) (string, error) {
		x, c := call(t, set, tool, args)
		var failed *agentrun.FailedError
		if err := x.Validate(t.Context(), c); err != nil && !errors.As(err, &failed) {
			return "", err
		}
		r, err := x.Execute(t.Context(), c) // by then the file may be another
		return string(r.Value), err
	}
}

// validate is what happens before anybody is asked.
func validate(t *testing.T, folder, tool, args string) error {
	t.Helper()
	x, c := toolOf(t, folder, tool, args)
	return x.Validate(t.Context(), c)
}

func toolOf(t *testing.T, folder, tool, args string) (agentrun.Tool, agentrun.Call) {
	t.Helper()
	set, err := filetool.New(folder)
	require.NoError(t, err)
	return call(t, set, tool, args)
}

func call(t *testing.T, set []agentrun.Tool, tool, args string) (agentrun.Tool, agentrun.Call) {
	t.Helper()
	i := slices.IndexFunc(set, func(x agentrun.Tool) bool { return x.Spec().Name == tool })
	require.GreaterOrEqual(t, i, 0, tool)
	return set[i], agentrun.Call{ToolCall: approvals.ToolCall{ID: "c", Name: tool, Args: json.RawMessage(args)}}
}

func TestFilesAreListedReadWrittenAndDeleted(t *testing.T) {
	folder, do := open(t)

	out, err := do("list_files", "")
	require.NoError(t, err)
	require.JSONEq(t, `{"files":[{"path":"reports/old.txt","bytes":3}],
		"left_out":[{"path":"link.txt","why":"It is a link. Links are not followed."}]}`, out)

	out, err = do("read_file", `{"path":"reports/old.txt"}`)
	require.NoError(t, err)
	require.Equal(t, `"old"`, out)

	_, err = do("write_file", `{"path":"a/b/new.txt","content":"new"}`)
	require.NoError(t, err)
	b, err := os.ReadFile(filepath.Join(folder, "a", "b", "new.txt"))
	require.NoError(t, err)
	require.Equal(t, "new", string(b))

	_, err = do("delete_file", `{"path":"reports/old.txt"}`)
	require.NoError(t, err)
	require.NoFileExists(t, filepath.Join(folder, "reports", "old.txt"))

	_, err = do("delete_file", `{"path":"reports/old.txt"}`)
	var failed *agentrun.FailedError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, "There is no file reports/old.txt.", failed.Message)
}

func TestNothingLeadsOutOfTheFolder(t *testing.T) {
	folder, do := open(t)
	for _, path := range []string{
		"../secret.txt", "/etc/hostname", "reports/../../secret.txt", "link.txt", ".", "", "reports/./old.txt",
	} {
		args, err := json.Marshal(map[string]string{"path": path})
		require.NoError(t, err)
		_, err = do("read_file", string(args))
		require.Error(t, err, "read %q", path)
	}
	_, err := do("write_file", `{"path":"link.txt","content":"gone"}`)
	require.Error(t, err)
	b, err := os.ReadFile(filepath.Join(filepath.Dir(folder), "secret.txt"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(b), "a link is not followed out of the folder")

	_, err = do("delete_file", `{"path":"reports"}`)
	require.Error(t, err, "a folder is not deleted")
}

// Nobody is asked about a file that there cannot be.
func TestANameThatIsTooLongIsRefusedBeforeAnyoneIsAsked(t *testing.T) {
	folder, do := open(t)
	for _, path := range []string{strings.Repeat("a", 256), "none/" + strings.Repeat("é", 256)} {
		for tool, args := range map[string]string{"read_file": `{"path":%q}`, "delete_file": `{"path":%q}`, "write_file": `{"path":%q,"content":""}`} {
			require.ErrorContains(t, validate(t, folder, tool, fmt.Sprintf(args, path)), "more than 255 characters")
		}
	}
	require.NoError(t, validate(t, folder, "read_file", fmt.Sprintf(`{"path":%q}`, strings.Repeat("a", 255))))
	_, err := do("read_file", fmt.Sprintf(`{"path":%q}`, strings.Repeat("é", 255))) // 510 bytes, which some file systems take
	require.ErrorAs(t, err, new(*agentrun.FailedError), "it has a reason that can be shown")
}

func TestWhatChangesFilesNeedsASignature(t *testing.T) {
	set, err := filetool.New(t.TempDir())
	require.NoError(t, err)
	kinds := map[string]agentrun.Kind{}
	for _, x := range set {
		kinds[x.Spec().Name] = x.Spec().Kind
	}
	require.Equal(t, map[string]agentrun.Kind{
		"list_files": agentrun.KindFunction, "read_file": agentrun.KindFunction,
		"write_file": agentrun.KindUnapproved, "delete_file": agentrun.KindUnapproved,
	}, kinds)
}

// What a policy may count on: by the words of MCP, what is left out is the worst.
func TestTheToolsSayWhatTheyDo(t *testing.T) {
	set, err := filetool.New(t.TempDir())
	require.NoError(t, err)
	no, yes := false, true
	for _, x := range set {
		want := map[string]agentrun.Annotations{
			"list_files":  {ReadOnlyHint: true, OpenWorldHint: &no},
			"read_file":   {ReadOnlyHint: true, OpenWorldHint: &no},
			"write_file":  {DestructiveHint: &yes, IdempotentHint: true, OpenWorldHint: &no},
			"delete_file": {DestructiveHint: &yes, OpenWorldHint: &no},
		}[x.Spec().Name]
		require.Equal(t, want, x.Spec().Annotations, x.Spec().Name)
	}
}

func TestAFolderThatWasReplacedIsNotWorkedOn(t *testing.T) {
	folder, do := open(t)
	require.NoError(t, os.Rename(folder, folder+".before"))
	gone := func(why string) {
		t.Helper()
		for tool, args := range map[string]string{
			"list_files": `{}`, "read_file": `{"path":"reports/old.txt"}`, "delete_file": `{"path":"reports/old.txt"}`,
			"write_file": `{"path":"new.txt","content":"x"}`,
		} {
			_, err := do(tool, args)
			var failed *agentrun.FailedError
			require.ErrorAs(t, err, &failed, "%s: %s", why, tool)
			require.Contains(t, failed.Message, "was moved or replaced since the bot started", "%s: %s", why, tool)
		}
		require.NoFileExists(t, filepath.Join(folder+".before", "new.txt"), why)
		require.FileExists(t, filepath.Join(folder+".before", "reports", "old.txt"), why)
	}
	gone("moved away")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "reports"), 0o750))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "reports", "old.txt"), []byte("another"), 0o600))
	gone("another in its place")
	require.FileExists(t, filepath.Join(folder, "reports", "old.txt"))

	require.NoError(t, os.RemoveAll(folder))
	require.NoError(t, os.Rename(folder+".before", folder))
	value, err := do("read_file", `{"path":"reports/old.txt"}`)
	require.NoError(t, err, "it is back")
	require.Contains(t, value, "old")
}

func TestAFolderBehindALinkIsTheOneItLedTo(t *testing.T) {
	base := t.TempDir()
	for _, name := range []string{"one", "two"} {
		require.NoError(t, os.Mkdir(filepath.Join(base, name), 0o750))
	}
	link := filepath.Join(base, "current")
	require.NoError(t, os.Symlink("one", link))
	set, err := filetool.New(link)
	require.NoError(t, err)
	write, c := call(t, set, "write_file", `{"path":"new.txt","content":"x"}`)
	_, err = write.Execute(t.Context(), c)
	require.NoError(t, err)

	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink("two", link))
	var failed *agentrun.FailedError
	require.ErrorAs(t, write.Validate(t.Context(), c), &failed, "people are not asked")
	_, err = write.Execute(t.Context(), c)
	require.ErrorAs(t, err, &failed)
	require.NoFileExists(t, filepath.Join(base, "two", "new.txt"))
}
