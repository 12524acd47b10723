package filetool_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools/filetool"
)

const secret = "the rows of the customers"

// guarded is a folder with databases/x, on which a policy could have a rule,
// and with other entries that lead there or nowhere.
func guarded(t *testing.T) (folder string, do func(tool, args string) (string, error)) {
	t.Helper()
	folder, do = open(t)
	for _, dir := range []string{"databases", "plain"} {
		require.NoError(t, os.Mkdir(filepath.Join(folder, dir), 0o750))
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "databases", "x"), []byte(secret), 0o600))
	require.NoError(t, os.Symlink("databases", filepath.Join(folder, "notes")))
	require.NoError(t, os.Symlink(filepath.Join("..", "databases"), filepath.Join(folder, "plain", "deep")))
	require.NoError(t, os.Symlink(filepath.Join("..", "databases", "x"), filepath.Join(folder, "plain", "x")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(folder, "plain", "dangling")))
	require.NoError(t, os.Link(filepath.Join(folder, "databases", "x"), filepath.Join(folder, "plain", "hard")))
	return folder, do
}

func args(t *testing.T, path string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"path": path})
	require.NoError(t, err)
	return string(b)
}

func writing(t *testing.T, path string) string {
	t.Helper()
	b, err := json.Marshal(map[string]string{"path": path, "content": "overwritten"})
	require.NoError(t, err)
	return string(b)
}

// failure is what the model reads of a call that failed.
func failure(t *testing.T, err error) string {
	t.Helper()
	var failed *agentrun.FailedError
	require.ErrorAs(t, err, &failed)
	return failed.Message
}

// A rule of the policy is about a path. A link under another path would get
// around it.
func TestALinkIsNeitherReadNorWrittenNorDeleted(t *testing.T) {
	folder, do := guarded(t)
	for path, link := range map[string]string{
		"notes/x": "notes", "notes/new": "notes", "notes/a/b": "notes", "notes": "notes",
		"plain/deep/x": "plain/deep", "plain/x": "plain/x", "plain/dangling": "plain/dangling", "link.txt": "link.txt",
	} {
		want := link + " is a link. Links are not followed, because the policy decides by path. Use the path of the file itself."
		for _, tool := range []string{"read_file", "delete_file"} {
			_, err := do(tool, args(t, path))
			require.Equal(t, want, failure(t, err), "%s %s", tool, path)
		}
		_, err := do("write_file", writing(t, path))
		require.Equal(t, want, failure(t, err), "write_file %s", path)
	}
	b, err := os.ReadFile(filepath.Join(folder, "databases", "x"))
	require.NoError(t, err)
	require.Equal(t, secret, string(b))
	entries, err := os.ReadDir(filepath.Join(folder, "databases"))
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing was made behind a link")
	require.NoFileExists(t, filepath.Join(folder, "plain", "nowhere"))
	for _, link := range []string{"notes", "plain/deep", "plain/x", "plain/dangling", "link.txt"} {
		_, err := os.Lstat(filepath.Join(folder, link))
		require.NoError(t, err, "%s is still there", link)
	}
}

func TestAListingSaysWhatItLeavesOut(t *testing.T) {
	_, do := guarded(t)
	out, err := do("list_files", "")
	require.NoError(t, err)
	link := "It is a link. Links are not followed."
	var listing map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &listing))
	require.Equal(t, map[string]any{
		"files": []any{
			map[string]any{"path": "databases/x", "bytes": float64(len(secret))},
			map[string]any{"path": "plain/hard", "bytes": float64(len(secret))},
			map[string]any{"path": "reports/old.txt", "bytes": 3.0},
		},
		"left_out": []any{
			map[string]any{"path": "link.txt", "why": link},
			map[string]any{"path": "notes", "why": link},
			map[string]any{"path": "plain/dangling", "why": link},
			map[string]any{"path": "plain/deep", "why": link},
			map[string]any{"path": "plain/x", "why": link},
		},
	}, listing)
}

// What is written under one name would change under the other, which the
// policy may rule on differently.
func TestAFileOfSeveralNamesIsNotWritten(t *testing.T) {
	folder, do := guarded(t)
	for _, path := range []string{"plain/hard", "databases/x"} {
		_, err := do("write_file", writing(t, path))
		require.Equal(t, path+" has more than one name (hard links). Writing it would also change the file under its other names, so it was not written.", failure(t, err))
		out, err := do("read_file", args(t, path))
		require.NoError(t, err)
		require.Equal(t, `"`+secret+`"`, out)
	}
	_, err := do("delete_file", args(t, "plain/hard"))
	require.NoError(t, err, "the name is deleted, and no other")
	b, err := os.ReadFile(filepath.Join(folder, "databases", "x"))
	require.NoError(t, err)
	require.Equal(t, secret, string(b))
	_, err = do("write_file", writing(t, "databases/x"))
	require.NoError(t, err, "it has one name now")
}

// What cannot run is refused before somebody is asked to approve it, and before
// an edit is taken.
func TestALinkIsRefusedBeforeAnybodyIsAsked(t *testing.T) {
	folder, _ := guarded(t)
	for _, c := range []struct{ tool, args string }{
		{"write_file", writing(t, "notes/x")},
		{"write_file", writing(t, "plain/x")},
		{"write_file", writing(t, "plain/hard")},
		{"write_file", writing(t, "reports")},
		{"write_file", writing(t, "reports/old.txt/x")},
		{"delete_file", args(t, "notes/x")},
		{"delete_file", args(t, "plain/x")},
		{"delete_file", args(t, "reports")},
	} {
		require.Error(t, validate(t, folder, c.tool, c.args), "%s %s", c.tool, c.args)
	}
	for _, c := range []struct{ tool, args string }{
		{"write_file", writing(t, "a/b/new.txt")},
		{"write_file", writing(t, "reports/old.txt")},
		{"delete_file", args(t, "reports/old.txt")},
		{"delete_file", args(t, "plain/hard")},
		{"delete_file", args(t, "not/there")}, // said when it runs, by then it may be
	} {
		require.NoError(t, validate(t, folder, c.tool, c.args), "%s %s", c.tool, c.args)
	}
	require.NoDirExists(t, filepath.Join(folder, "a"), "nothing is made")
	b, err := os.ReadFile(filepath.Join(folder, "reports", "old.txt"))
	require.NoError(t, err)
	require.Equal(t, "old", string(b), "and nothing is emptied")
}

// The policy, the card and the tool have the same text of a path: one that
// leads to a file has no other spelling that leads there too.
func TestAPathHasOneSpelling(t *testing.T) {
	folder, do := guarded(t)
	require.NoError(t, os.Remove(filepath.Join(folder, "plain", "hard")))
	for _, path := range []string{
		"./databases/x", "reports/../databases/x", "databases/./x", "databases//x", "databases/x/", "/databases/x",
		"databases/x/.", "databases/x/..", "databases/../databases/x", "..", "./", "",
		"databases/x\x00", "databases\x00/x", "\x00", "databases/x\x00.txt",
	} {
		for _, tool := range []string{"read_file", "delete_file"} {
			_, err := do(tool, args(t, path))
			require.ErrorContains(t, err, "is not a path within the folder", "%s %q", tool, path)
		}
		_, err := do("write_file", writing(t, path))
		require.ErrorContains(t, err, "is not a path within the folder", "write_file %q", path)
	}
	// Where the file system takes these for the same name, they are refused;
	// where it does not, they are other files.
	for _, path := range []string{"Databases/x", "databases/X", "DATABASES/X", "databases /x", "databases./x", "databases/x.", "databases/x ", `databases\x`, "databases/x:a", "datab\u0061\u0301ses/x", "dаtabases/x"} {
		_, err := do("read_file", args(t, path))
		require.Error(t, err, "read_file %q", path)
		_, err = do("delete_file", args(t, path))
		require.Error(t, err, "delete_file %q", path)
		_, _ = do("write_file", writing(t, path)) // may make another file
	}
	b, err := os.ReadFile(filepath.Join(folder, "databases", "x"))
	require.NoError(t, err)
	require.Equal(t, secret, string(b))
}

func TestAFileIsNoFolder(t *testing.T) {
	_, do := open(t)
	_, err := do("read_file", args(t, "reports/old.txt/x"))
	require.Equal(t, "reports/old.txt is not a folder.", failure(t, err))
	_, err = do("write_file", writing(t, "reports/old.txt/x"))
	require.Equal(t, "reports/old.txt is not a folder.", failure(t, err))
	_, err = do("read_file", args(t, "reports"))
	require.Equal(t, "reports is a folder.", failure(t, err))
	_, err = do("write_file", writing(t, "reports"))
	require.Equal(t, "reports is a folder.", failure(t, err))
	_, err = do("read_file", args(t, "nowhere/x"))
	require.Equal(t, "There is no file nowhere/x.", failure(t, err))
}

func TestALargeFolderIsListedInPart(t *testing.T) {
	folder, do := open(t)
	for n := range 300 {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("f%03d", n)), nil, 0o600))
		require.NoError(t, os.Symlink("reports", filepath.Join(folder, fmt.Sprintf("l%03d", n))))
	}
	out, err := do("list_files", "")
	require.NoError(t, err)
	var listing struct {
		Files   []any `json:"files"`
		LeftOut []any `json:"left_out"`
		More    bool  `json:"more"`
	}
	require.NoError(t, json.Unmarshal([]byte(out), &listing))
	require.Equal(t, []int{300, 200}, []int{len(listing.Files), len(listing.LeftOut)})
	require.True(t, listing.More)
}

func TestADeepFolderIsLeftOut(t *testing.T) {
	folder, do := open(t)
	deep := strings.TrimSuffix(strings.Repeat("d/", 65), "/")
	require.NoError(t, os.MkdirAll(filepath.Join(folder, deep), 0o750))
	out, err := do("list_files", "")
	require.NoError(t, err)
	require.Contains(t, out, `{"path":"`+deep+`","why":"It is nested in more than 64 folders."}`)
}

// Something else takes the place of an entry after it was looked at and before
// it is opened. Nothing of it is read, written or listed.
func TestWhatTakesThePlaceOfAnEntryMeanwhileIsNotUsed(t *testing.T) {
	link := func(target string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			t.Helper()
			require.NoError(t, os.Symlink(filepath.FromSlash(target), path))
		}
	}
	for name, c := range map[string]struct {
		entry string
		put   func(t *testing.T, path string) // nil removes the entry
	}{
		"a link for the folder":                {"notes", link("databases")},
		"a link out of the folder":             {"notes", link("../outside")},
		"a folder for the folder":              {"notes", func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Mkdir(path, 0o750)) }},
		"a file for the folder":                {"notes", func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.WriteFile(path, nil, 0o600)) }},
		"nothing for the folder":               {"notes", nil},
		"nothing for the file":                 {"notes/x", nil},
		"a link for the file":                  {"notes/x", link("y")},
		"a link for the file to elsewhere":     {"notes/x", link("../databases/x")},
		"a link for the file to one not there": {"notes/x", link("new")},
		"a folder for the file":                {"notes/x", func(t *testing.T, path string) { t.Helper(); require.NoError(t, os.Mkdir(path, 0o750)) }},
	} {
		for _, tool := range []string{"read_file", "write_file", "list_files", "delete_file"} {
			t.Run(name+", "+tool, func(t *testing.T) {
				folder, _ := open(t)
				at := func(p string) string { return filepath.Join(folder, filepath.FromSlash(p)) }
				for _, dir := range []string{"databases", "notes", "../outside"} {
					require.NoError(t, os.Mkdir(at(dir), 0o750))
					require.NoError(t, os.WriteFile(at(dir+"/x"), []byte(secret), 0o600))
				}
				require.NoError(t, os.WriteFile(at("notes/x"), []byte("a note"), 0o600))
				require.NoError(t, os.WriteFile(at("notes/y"), []byte(secret), 0o600))
				swaps := 0
				filetool.Meanwhile(t, func(path string) {
					if path != c.entry || swaps > 0 {
						return
					}
					swaps++
					require.NoError(t, os.Rename(at(path), at("own")))
					if c.put != nil {
						c.put(t, at(path))
					}
				})
				call := args(t, "notes/x")
				switch tool {
				case "write_file":
					call = writing(t, "notes/x")
				case "list_files":
					call = ""
				}
				x, in := toolOf(t, folder, tool, call)
				out, err := x.Execute(t.Context(), in)
				require.NotContains(t, string(out.Value), secret)
				switch {
				case tool == "list_files":
					require.NoError(t, err)
					require.NotContains(t, string(out.Value), `"notes/x","bytes":25`)
				case tool == "delete_file" && c.entry == "notes/x": // at most, what is there loses its name
				case tool == "write_file" && (name == "nothing for the file" || name == "a folder for the folder"):
					require.NoError(t, err, "a new file is made at the path")
				default:
					require.Error(t, err)
				}
				for _, p := range []string{"databases/x", "../outside/x", "notes/y", "own/y"} {
					if b, err := os.ReadFile(at(p)); err == nil { // otherwise it was moved
						require.Equal(t, secret, string(b))
					}
				}
				require.NoFileExists(t, at("notes/new"), "nothing is made behind a link")
			})
		}
	}
}

// A link is there while the file is opened, and is gone when that is checked.
func TestWhatIsOpenIsComparedWithTheEntry(t *testing.T) {
	for _, entry := range []string{"notes", "notes/x"} {
		for _, tool := range []string{"read_file", "write_file"} {
			folder, _ := open(t)
			at := func(p string) string { return filepath.Join(folder, filepath.FromSlash(p)) }
			for _, dir := range []string{"notes", "databases"} {
				require.NoError(t, os.Mkdir(at(dir), 0o750))
				require.NoError(t, os.WriteFile(at(dir+"/y"), []byte(secret), 0o600))
				require.NoError(t, os.WriteFile(at(dir+"/x"), []byte(secret), 0o600))
			}
			target := map[string]string{"notes": "databases", "notes/x": "y"}[entry]
			looks := 0
			filetool.Meanwhile(t, func(path string) {
				if path != entry {
					return
				}
				switch looks++; looks {
				case 1:
					require.NoError(t, os.Rename(at(entry), at("own")))
					require.NoError(t, os.Symlink(target, at(entry)))
				case 2:
					require.NoError(t, os.Remove(at(entry)))
					require.NoError(t, os.Rename(at("own"), at(entry)))
				}
			})
			x, in := toolOf(t, folder, tool, writing(t, "notes/x"))
			if tool == "read_file" {
				x, in = toolOf(t, folder, tool, args(t, "notes/x"))
			}
			_, err := x.Execute(t.Context(), in)
			require.Equal(t, entry+" changed while it was being opened. Nothing was done.", failure(t, err))
			for _, p := range []string{"notes/x", "notes/y", "databases/x"} {
				b, err := os.ReadFile(at(p))
				require.NoError(t, err)
				require.Equal(t, secret, string(b))
			}
		}
	}
}

// Some file systems open "notes" for "Notes" too. Then the folder has no entry
// of the name that was asked for.
func TestAnEntryIsFoundByItsExactNameOnly(t *testing.T) {
	for entry, listed := range map[string]string{"notes": "Notes", "notes/x": "notes/X"} {
		for _, tool := range []string{"read_file", "write_file", "delete_file"} {
			folder, _ := open(t)
			at := func(p string) string { return filepath.Join(folder, filepath.FromSlash(p)) }
			require.NoError(t, os.Mkdir(at("notes"), 0o750))
			require.NoError(t, os.WriteFile(at("notes/x"), []byte(secret), 0o600))
			last := 3 // looked at, opened, compared
			if tool == "delete_file" && entry == "notes/x" {
				last = 1 // it is not opened
			}
			looks := 0
			filetool.Meanwhile(t, func(path string) {
				if path == entry {
					if looks++; looks == last {
						require.NoError(t, os.Rename(at(entry), at(listed)))
					}
				}
			})
			call := args(t, "notes/x")
			if tool == "write_file" {
				call = writing(t, "notes/x")
			}
			x, in := toolOf(t, folder, tool, call)
			_, err := x.Execute(t.Context(), in)
			require.Equal(t, "There is no "+entry+" by exactly this name. Write paths exactly as list_files lists them.", failure(t, err), tool)
			require.NoError(t, os.Rename(at(listed), at(entry)))
			b, err := os.ReadFile(at("notes/x"))
			require.NoError(t, err)
			require.Equal(t, secret, string(b))
		}
	}
}

// A file system that makes the file under another name leaves nothing behind:
// the call failed, so the folder is as it was. What somebody else put there in
// the meantime is theirs.
func TestAFileThatWasMadeUnderAnotherNameIsRemoved(t *testing.T) {
	for name, theirs := range map[string]bool{"ours": false, "somebody else's": true} {
		t.Run(name, func(t *testing.T) {
			folder, _ := open(t)
			at := func(p string) string { return filepath.Join(folder, filepath.FromSlash(p)) }
			looks := 0
			filetool.Meanwhile(t, func(path string) {
				if path != "new" {
					return
				}
				switch looks++; looks {
				case 3: // opened and compared; now its name is looked up
					require.NoError(t, os.Rename(at("new"), at("New")))
				case 4: // the folder finds it under both names
					require.NoError(t, os.Rename(at("New"), at("new")))
					if theirs {
						require.NoError(t, os.Rename(at("new"), at("moved")))
						require.NoError(t, os.WriteFile(at("new"), []byte(secret), 0o600))
					}
				}
			})
			x, in := toolOf(t, folder, "write_file", writing(t, "new"))
			_, err := x.Execute(t.Context(), in)
			require.Equal(t, "There is no new by exactly this name. Write paths exactly as list_files lists them.", failure(t, err))
			if !theirs {
				require.NoFileExists(t, at("new"))
				return
			}
			b, err := os.ReadFile(at("new"))
			require.NoError(t, err)
			require.Equal(t, secret, string(b))
		})
	}
}
