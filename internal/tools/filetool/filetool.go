// Package filetool is a set of tools on the files of one folder: to list and
// read them needs no approval, to write or delete them does.
//
// The folder is opened once as an [os.Root]: no path, link or race leads out
// of it. If its path leads to another folder later, every call fails: the one
// that is open is no longer what people mean by its name. Within it no link is
// followed either, and a path has one spelling: what a policy rules on, what a
// card shows and what is opened is one file. A link is not read, written or
// deleted, and a file with several names (hard links) is not written; the model
// is told why.
package filetool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/tools"
)

// readFile is what a preview of a file amounts to.
const readFile = "read_file"

// maxRead is how many bytes of a file the model is given.
const maxRead = 64 << 10

// New returns the tools on the folder. The folder must exist; it stays open
// for as long as the tools are used, and must stay where it is.
func New(folder string) ([]agentrun.Tool, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder of the file tools: %w", err)
	}
	s := set{folder: folder, root: root}
	closed, destructive := false, true // one folder and nothing else; a file that is replaced or deleted is gone
	reads := agentrun.Annotations{ReadOnlyHint: true, OpenWorldHint: &closed}
	destroys := agentrun.Annotations{DestructiveHint: &destructive, OpenWorldHint: &closed}
	overwrites := agentrun.Annotations{DestructiveHint: &destructive, IdempotentHint: true, OpenWorldHint: &closed}
	list, err1 := tools.New(tools.Spec[nothing]{
		Name:        "list_files",
		Description: "Lists the files of the folder with their sizes.",
		Approval:    tools.Never,
		Annotations: reads,
		Effect:      agentrun.EffectPure,
	}, s.list)
	read, err2 := tools.New(tools.Spec[file]{
		Name:        readFile,
		Description: "Reads a text file.",
		Approval:    tools.Never,
		Annotations: reads,
		Effect:      agentrun.EffectPure,
		Check:       checkRead,
		Summary:     "Read {args.path}",
	}, s.read)
	write, err3 := tools.New(tools.Spec[contents]{
		Name:        "write_file",
		Description: "Writes a text file, replacing what was there. A person has to approve it first.",
		Approval:    tools.Always,
		Annotations: overwrites,
		Check:       s.checkWrite,
		Sequential:  true,
		Summary:     "Write {args.path} ({bytes args.content})",
		Lookup:      s.lookWritten,

		Preview: s.previewWrite, PreviewReads: func(in contents) (string, any) { return readFile, file{in.Path} },
		ChecksPrecondition: true,
	}, s.write)
	remove, err4 := tools.New(tools.Spec[file]{
		Name:        "delete_file",
		Description: "Deletes a file for good. A person has to approve it first.",
		Approval:    tools.Always,
		Annotations: destroys,
		Severity:    approvals.SeverityIrreversible,
		Check:       s.checkRemove,
		Summary:     "Delete {args.path}",

		Preview: s.previewRemove, PreviewReads: func(in file) (string, any) { return readFile, in },
		ChecksPrecondition: true,
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
)

type set struct {
	folder string
	root   *os.Root
}

// checkPath accepts a path in the one form that it can have, so that what the
// policy rules on, what people read and what is opened are the same text.
func checkPath(p string) error {
	if _, err := filepath.Localize(p); err != nil || p == "." {
		return fmt.Errorf("%q is not a path within the folder: use names separated by /, without dots alone", p)
	}
	for name := range strings.SplitSeq(p, "/") {
		if utf8.RuneCountInString(name) > maxName {
			return fmt.Errorf("a name in the path has more than %d characters, which no file system takes", maxName)
		}
	}
	return nil
}

const maxName = 255

// early returns what is wrong if the model is to read it before anybody is
// asked. Whatever else is wrong is found when the call runs.
func early(err error) error {
	if f, ok := errors.AsType[*agentrun.FailedError](err); ok {
		return f
	}
	return nil
}

func checkRead(_ context.Context, _ agentrun.Call, in file) error { return checkPath(in.Path) }

func (s set) checkWrite(_ context.Context, _ agentrun.Call, in contents) error {
	if err := checkPath(in.Path); err != nil {
		return err
	}
	here, err := s.enter(path.Dir(in.Path), false)
	if err != nil {
		return early(err)
	}
	defer here.Close() //nolint:errcheck // nothing was written
	f, err := openToWrite(here, in.Path, os.O_WRONLY)
	if err != nil {
		return early(err)
	}
	return f.Close()
}

func (s set) checkRemove(_ context.Context, _ agentrun.Call, in file) error {
	if err := checkPath(in.Path); err != nil {
		return err
	}
	here, err := s.removable(in.Path)
	if err != nil {
		return early(err)
	}
	return here.Close()
}

func (s set) read(_ context.Context, _ agentrun.Call, in file) (string, error) {
	here, err := s.enter(path.Dir(in.Path), false)
	if err != nil {
		return "", words(in.Path, err)
	}
	defer here.Close() //nolint:errcheck // nothing was written
	f, err := openFile(here, path.Base(in.Path), in.Path, os.O_RDONLY)
	if err != nil {
		return "", words(in.Path, err)
	}
	defer f.Close() //nolint:errcheck // nothing was written
	b, err := io.ReadAll(io.LimitReader(f, maxRead+1))
	switch {
	case err != nil:
		return "", words(in.Path, err)
	case len(b) > maxRead:
		return "", failed("%s is longer than %d bytes.", in.Path, maxRead)
	case !utf8.Valid(b):
		return "", failed("%s is not a text file.", in.Path)
	}
	return string(b), nil
}

func (s set) write(ctx context.Context, c agentrun.Call, in contents) (string, error) {
	f, err := s.toWrite(ctx, c, in.Path)
	if err != nil {
		return "", words(in.Path, err)
	}
	if err := f.Truncate(0); err != nil {
		return "", words(in.Path, errors.Join(err, f.Close()))
	}
	_, err = f.WriteAt([]byte(in.Content), 0)
	if err := errors.Join(err, f.Close()); err != nil {
		return "", brokeOff(in.Path, err)
	}
	return written(in), nil
}

// toWrite opens the file at the path to be overwritten. If there is none it makes
// it, with its folders. Nothing is made or changed if people saw another file, or
// none.
func (s set) toWrite(ctx context.Context, c agentrun.Call, p string) (*os.File, error) {
	none := holds(c, state{Absent: true}) // nil: people do not mind that there is none
	here, err := s.enter(path.Dir(p), none == nil)
	if errors.Is(err, fs.ErrNotExist) && none != nil {
		return nil, none
	}
	if err != nil {
		return nil, err
	}
	defer here.Close() //nolint:errcheck // the file is closed by itself
	flag := os.O_WRONLY
	if c.Precondition != nil {
		flag = os.O_RDWR // it is read before it is written
	}
	f, err := openToWrite(here, p, flag)
	if errors.Is(err, fs.ErrNotExist) {
		if none != nil {
			return nil, none
		}
		return createFile(here, path.Base(p), p)
	}
	if err != nil {
		return nil, err
	}
	if c.Precondition != nil {
		var now found
		if now, err = look(ctx, f); err == nil {
			err = holds(c, state{SHA256: now.SHA256})
		}
	}
	if err == nil {
		err = stillOnly(here, p, f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// openToWrite opens the file at the path, which is in this folder, if it is
// there and may be overwritten. It changes nothing.
func openToWrite(here *os.Root, p string, flag int) (*os.File, error) {
	f, err := openFile(here, path.Base(p), p, flag)
	if err != nil {
		return nil, err
	}
	if err := oneName(f, p); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// stillOnly returns an error unless the open file is still the one at the path and
// has no other name: it may have been moved while it was compared. Between this
// and the writing only a moment is left.
func stillOnly(here *os.Root, p string, f *os.File) error {
	opened, err := f.Stat()
	if err == nil {
		err = isEntry(here, path.Base(p), p, opened)
	}
	if err != nil {
		return err
	}
	return oneName(f, p)
}

// oneName returns an error if the open file has other names, too.
func oneName(f *os.File, p string) error {
	n, err := countNames(f)
	if err == nil && n > 1 {
		err = failed("%s has more than one name (hard links). Writing it would also change the file under its other names, so it was not written.", p)
	}
	return err
}

func (s set) remove(ctx context.Context, c agentrun.Call, in file) (string, error) {
	here, err := s.removable(in.Path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := holds(c, state{Absent: true}); err != nil {
			return "", err
		}
	}
	if err != nil {
		return "", words(in.Path, err)
	}
	if err := s.sameFile(ctx, c, here, in.Path); err != nil {
		return "", errors.Join(words(in.Path, err), here.Close())
	}
	// Removing a name follows no link. If something else has taken the place of
	// the file meanwhile, that loses its name, and nothing else is touched.
	if err := errors.Join(here.Remove(path.Base(in.Path)), here.Close()); err != nil {
		return "", words(in.Path, err)
	}
	return "Deleted " + in.Path + ".", nil
}

// removable returns the folder of the file at the path, if it may be deleted.
// The caller closes the folder.
func (s set) removable(p string) (*os.Root, error) {
	here, err := s.enter(path.Dir(p), false)
	if err != nil {
		return nil, err
	}
	info, err := here.Lstat(path.Base(p))
	switch {
	case err != nil:
	case info.IsDir():
		err = failed("%s is a folder. Only files can be deleted.", p)
	default:
		err = mustBeFile(info, p)
	}
	if err == nil {
		err = spelled(here, path.Base(p), p)
	}
	if err != nil {
		return nil, errors.Join(err, here.Close())
	}
	return here, nil
}
