package filetool

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
)

const (
	maxEntries = 500 // what one listing names
	maxDepth   = 64  // folders within each other that a listing opens
)

type (
	entry struct {
		Path  string `json:"path"`
		Bytes int64  `json:"bytes"`
	}
	leftOut struct {
		Path string `json:"path"`
		Why  string `json:"why"`
	}
	listing struct {
		Files   []entry   `json:"files"`
		LeftOut []leftOut `json:"left_out,omitempty"` // what is there and is no file that can be read
		More    bool      `json:"more,omitempty"`     // the folder has more than is listed
	}
)

func (s set) list(ctx context.Context, _ agentrun.Call, _ nothing) (listing, error) {
	l := listing{Files: []entry{}}
	here, err := s.enter(".", false)
	if err != nil {
		return l, err
	}
	defer here.Close() //nolint:errcheck // nothing was written
	return l, l.add(ctx, here, "")
}

// add lists what is in this folder and below; at is its path.
func (l *listing) add(ctx context.Context, here *os.Root, at string) error {
	names, err := namesIn(here)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		info, err := here.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it is gone by now
		}
		if err != nil {
			return err
		}
		p := path.Join(at, name)
		if info.IsDir() {
			err = l.descend(ctx, here, name, p)
		} else {
			l.addFile(info, p)
		}
		if err != nil || l.More {
			return err
		}
	}
	return nil
}

// descend lists a folder of this one, or says why it does not.
func (l *listing) descend(ctx context.Context, here *os.Root, name, at string) error {
	if strings.Count(at, "/") >= maxDepth {
		l.leaveOut(at, "It is nested in more than 64 folders.")
		return nil
	}
	sub, err := step(here, name, at, false)
	if err == nil {
		err = errors.Join(l.add(ctx, sub, at), sub.Close())
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var words *agentrun.FailedError
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist): // it may be gone by now
	case errors.Is(err, fs.ErrPermission):
		l.leaveOut(at, "The bot has no permission to read it.")
	case errors.As(err, &words):
		l.leaveOut(at, words.Message)
	default:
		l.leaveOut(at, "It could not be read.")
	}
	return nil
}

func (l *listing) addFile(info fs.FileInfo, at string) {
	switch {
	case isLink(info):
		l.leaveOut(at, "It is a link. Links are not followed.")
	case !info.Mode().IsRegular():
		l.leaveOut(at, "It is not a regular file.")
	case l.room():
		l.Files = append(l.Files, entry{Path: at, Bytes: info.Size()})
	}
}

func (l *listing) leaveOut(at, why string) {
	if l.room() {
		l.LeftOut = append(l.LeftOut, leftOut{Path: at, Why: why})
	}
}

// room reports whether one more may be listed; if not, the listing says so.
func (l *listing) room() bool {
	l.More = len(l.Files)+len(l.LeftOut) >= maxEntries
	return !l.More
}

// namesIn are the names in the folder, in order.
func namesIn(here *os.Root) ([]string, error) {
	f, err := here.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	names, err := f.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}
