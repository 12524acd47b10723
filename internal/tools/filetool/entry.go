package filetool

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"

	"github.com/countersign/countersign/internal/agentrun"
)

// An [os.Root] keeps every path within the folder, but it follows links that
// stay inside. A policy rules on paths, so here a path never leads to a file
// that has another path: each name is opened by itself, and what was opened is
// then compared with the entry of that name. A check before opening would be a
// race. This one is not: the file is open by then, so it stays the same file
// and its inode is not used again, whatever takes the place of its name.

// meanwhile is called between the steps in which an entry is looked at, opened
// and compared. There tests put something else in its place.
var meanwhile = func(at string) {}

// enter opens the folder at the path, without following a link. If create is
// set it makes the folders that are missing. The caller closes the folder.
func (s set) enter(dir string, create bool) (*os.Root, error) {
	if err := s.mustBeInPlace(); err != nil {
		return nil, err
	}
	here, err := s.root.OpenRoot(".")
	if err != nil || dir == "." {
		return here, err
	}
	at := ""
	for name := range strings.SplitSeq(dir, "/") {
		at = path.Join(at, name)
		next, err := step(here, name, at, create)
		if err == nil {
			err = spelled(here, name, at)
		}
		_ = here.Close() // nothing was written
		if err != nil {
			if next != nil {
				_ = next.Close()
			}
			return nil, err
		}
		here = next
	}
	return here, nil
}

// mustBeInPlace refuses a folder that was moved, deleted or covered by a mount, or to
// which a link no longer leads, since it was opened.
func (s set) mustBeInPlace() error {
	opened, err := s.root.Stat(".")
	if err != nil {
		return err
	}
	now, err := os.Stat(s.folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !os.SameFile(opened, now) {
		return failed("The folder of these files was moved or replaced since the bot started. Nothing was done. An operator must restart the bot.")
	}
	return nil
}

// step opens the folder of that name in this one; at is its whole path.
func step(here *os.Root, name, at string, create bool) (*os.Root, error) {
	before, err := here.Lstat(name)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = here.Mkdir(name, 0o750); err == nil || errors.Is(err, fs.ErrExist) {
			before, err = here.Lstat(name)
		}
	}
	if err == nil {
		err = mustBeFolder(before, at)
	}
	if err != nil {
		return nil, err
	}
	meanwhile(at)
	next, err := here.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	opened, err := next.Stat(".")
	if err == nil {
		err = isEntry(here, name, at, opened)
	}
	if err != nil {
		return nil, errors.Join(err, next.Close())
	}
	return next, nil
}

// openFile opens the file of that name, which must be there and be a regular
// file; at is its whole path. It does not wait for anything, follows no link
// and changes nothing.
func openFile(here *os.Root, name, at string, flag int) (*os.File, error) {
	before, err := here.Lstat(name)
	if err == nil {
		err = mustBeFile(before, at) // to open a pipe would already be noticed at its other end
	}
	if err != nil {
		return nil, err
	}
	meanwhile(at)
	f, err := here.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return confirmed(here, name, at, f)
}

// createFile makes a file of that name, of which there must be none.
func createFile(here *os.Root, name, at string) (*os.File, error) {
	meanwhile(at)
	f, err := here.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, changed(at)
	}
	if err != nil {
		return nil, err
	}
	opened, statErr := f.Stat()
	made, err := confirmed(here, name, at, f)
	if err == nil {
		return made, nil
	}
	// The file system may have given it another name. What someone else put
	// there meanwhile stays.
	meanwhile(at)
	if entry, lstatErr := here.Lstat(name); statErr == nil && lstatErr == nil && os.SameFile(opened, entry) {
		err = errors.Join(err, here.Remove(name))
	}
	return nil, err
}

// confirmed returns the open file if it is the regular file of exactly that
// name, and closes it otherwise.
func confirmed(here *os.Root, name, at string, f *os.File) (*os.File, error) {
	opened, err := f.Stat()
	if err == nil {
		err = mustBeFile(opened, at)
	}
	if err == nil {
		err = isEntry(here, name, at, opened)
	}
	if err == nil {
		err = spelled(here, name, at)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// isEntry returns an error unless what was opened is the entry of that name
// itself, and not what a link of that name leads to.
func isEntry(here *os.Root, name, at string, opened fs.FileInfo) error {
	meanwhile(at)
	entry, err := here.Lstat(name)
	switch {
	case err != nil:
		return err
	case isLink(entry):
		return linkError(at)
	case !os.SameFile(entry, opened):
		return changed(at)
	}
	return nil
}

// spelled returns an error unless the folder has an entry with exactly this
// name. Some file systems find one whose name differs in case, in the encoding
// of its letters or by a dot at the end.
func spelled(here *os.Root, name, at string) error {
	meanwhile(at)
	f, err := here.Open(".")
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	for {
		names, err := f.Readdirnames(1024)
		switch {
		case slices.Contains(names, name):
			return nil
		case errors.Is(err, io.EOF):
			return failed("There is no %s by exactly this name. Write paths exactly as list_files lists them.", at)
		case err != nil:
			return err
		}
	}
}

func isLink(info fs.FileInfo) bool { return info.Mode()&fs.ModeSymlink != 0 }

func mustBeFolder(info fs.FileInfo, at string) error {
	switch {
	case isLink(info):
		return linkError(at)
	case !info.IsDir():
		return failed("%s is not a folder.", at)
	}
	return nil
}

func mustBeFile(info fs.FileInfo, at string) error {
	switch {
	case isLink(info):
		return linkError(at)
	case info.IsDir():
		return failed("%s is a folder.", at)
	case !info.Mode().IsRegular():
		return failed("%s is not a regular file.", at)
	}
	return nil
}

func linkError(at string) error {
	return failed("%s is a link. Links are not followed, because the policy decides by path. Use the path of the file itself.", at)
}

func changed(at string) error {
	return failed("%s changed while it was being opened. Nothing was done.", at)
}

// failed returns words that the model reads.
func failed(format string, args ...any) error {
	return &agentrun.FailedError{Message: fmt.Sprintf(format, args...)}
}

// brokeOff says that a file was emptied, and its new text not written as a whole, such
// as on a full disk.
func brokeOff(name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // without the path of the machine
	}
	return &agentrun.UnsureError{Message: fmt.Sprintf("The writing of %s broke off: %v. It may have a part of the new text, and what it had before is lost.", name, err)}
}

// words makes of a file error what the model may read: no path of the machine.
func words(name string, err error) error {
	if f, ok := errors.AsType[*agentrun.FailedError](err); ok {
		return f
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return failed("There is no file %s.", name)
	case errors.Is(err, fs.ErrPermission):
		return failed("The bot has no permission for the file %s.", name)
	case errors.Is(err, syscall.ENAMETOOLONG): // it limits bytes
		return failed("A name in the path %s is too long for the file system.", name)
	}
	return err
}
