// Package filetool is a set of tools on the files of one folder: to list and
// read them needs no signature, to write or delete them does.
//
// The folder is opened once as an [os.Root]: no path, link or race leads out
// of it.
package filetool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools"
)

const (
	maxRead    = 64 << 10 // bytes of a file that the model is given
	maxEntries = 500      // files that one listing names
)

// New returns the tools on the folder. The folder must exist; it stays open
// for as long as the tools are used.
func New(folder string) ([]agentrun.Tool, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the file tools: %w", err)
	}
	s := set{root: root}
	closed, destructive := false, true // one folder and nothing else; a file that is replaced or deleted is gone
	reads := agentrun.Annotations{ReadOnlyHint: true, OpenWorldHint: &closed}
	destroys := agentrun.Annotations{DestructiveHint: &destructive, OpenWorldHint: &closed}
	overwrites := agentrun.Annotations{DestructiveHint: &destructive, IdempotentHint: true, OpenWorldHint: &closed}
	list, err1 := tools.New(tools.Spec[nothing]{
		Name:        "list_files",
		Description: "Lists the files of the folder with their sizes.",
		Approval:    tools.Never,
		Annotations: reads,
	}, s.list)
	read, err2 := tools.New(tools.Spec[file]{
		Name:        "read_file",
		Description: "Reads a text file.",
		Approval:    tools.Never,
		Annotations: reads,
		Check:       checkPath,
	}, s.read)
	write, err3 := tools.New(tools.Spec[contents]{
		Name:        "write_file",
		Description: "Writes a text file, replacing what was there. A person signs it first.",
		Approval:    tools.Always,
		Annotations: overwrites,
		Check:       func(ctx context.Context, c agentrun.Call, in contents) error { return checkPath(ctx, c, file{in.Path}) },
		Sequential:  true,
	}, s.write)
	remove, err4 := tools.New(tools.Spec[file]{
		Name:        "delete_file",
		Description: "Deletes a file for good. A person signs it first.",
		Approval:    tools.Always,
		Annotations: destroys,
		Check:       checkPath,
	}, s.remove)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return []agentrun.Tool{list, read, write, remove}, nil
}

type (
	nothing struct{}
	file    struct {
		Path string `json:"path" jsonschema:"the file, relative to the folder, such as reports/2026-q1.txt"`
	}
	contents struct {
		Path    string `json:"path" jsonschema:"the file, relative to the folder"`
		Content string `json:"content" jsonschema:"the whole new text of the file"`
	}
	entry struct {
		Path  string `json:"path"`
		Bytes int64  `json:"bytes"`
	}
	listing struct {
		Files []entry `json:"files"`
		More  bool    `json:"more,omitempty"` // the folder has more files than are listed
	}
)

type set struct{ root *os.Root }

func checkPath(_ context.Context, _ agentrun.Call, in file) error {
	if !fs.ValidPath(in.Path) || in.Path == "." {
		return fmt.Errorf("%q is not a path within the folder: use names separated by /, without dots alone", in.Path)
	}
	return nil
}

func (s set) list(context.Context, agentrun.Call, nothing) (listing, error) {
	l := listing{Files: []entry{}}
	err := fs.WalkDir(s.root.FS(), ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if len(l.Files) == maxEntries {
			l.More = true
			return fs.SkipAll
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		l.Files = append(l.Files, entry{Path: p, Bytes: info.Size()})
		return nil
	})
	return l, err
}

func (s set) read(_ context.Context, _ agentrun.Call, in file) (string, error) {
	f, err := s.root.Open(in.Path)
	if err != nil {
		return "", words(in.Path, err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	switch {
	case err != nil:
		return "", words(in.Path, err)
	case len(b) > maxRead:
		return "", &agentrun.FailedError{Message: fmt.Sprintf("%s is longer than %d bytes.", in.Path, maxRead)}
	case !utf8.Valid(b):
		return "", &agentrun.FailedError{Message: in.Path + " is not a text file."}
	}
	return string(b), nil
}

func (s set) write(_ context.Context, _ agentrun.Call, in contents) (string, error) {
	if dir := path.Dir(in.Path); dir != "." {
		if err := s.root.MkdirAll(dir, 0o750); err != nil {
			return "", words(in.Path, err)
		}
	}
	if err := s.root.WriteFile(in.Path, []byte(in.Content), 0o600); err != nil {
		return "", words(in.Path, err)
	}
	return fmt.Sprintf("Wrote %d bytes to %s.", len(in.Content), in.Path), nil
}

func (s set) remove(_ context.Context, _ agentrun.Call, in file) (string, error) {
	info, err := s.root.Lstat(in.Path)
	if err != nil {
		return "", words(in.Path, err)
	}
	if info.IsDir() {
		return "", &agentrun.FailedError{Message: in.Path + " is a folder; only files are deleted."}
	}
	if err := s.root.Remove(in.Path); err != nil {
		return "", words(in.Path, err)
	}
	return "Deleted " + in.Path + ".", nil
}

// words makes of a file error what the model may read: no path of the machine.
func words(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &agentrun.FailedError{Message: "There is no file " + name + "."}
	case errors.Is(err, fs.ErrPermission):
		return &agentrun.FailedError{Message: "The file " + name + " may not be touched."}
	}
	return err
}
