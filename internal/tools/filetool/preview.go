package filetool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// maxDiff is how long a new text may be to be compared with the old one, which
// is at most [maxRead].
const maxDiff = 256 << 10

// A state is what people saw of a file, and what must still be so when a call
// acts on it: its whole content and, where the file itself counts and not only
// its identity; or that it does not exist.
type state struct {
	SHA256 string `json:"sha256,omitempty"`
	File   string `json:"file,omitempty"`
	Absent bool   `json:"absent,omitempty"`
}

// holds returns [*agentrun.PreconditionFailed] if people saw something else than
// this. Without a precondition they saw nothing that has to hold.
func holds(c agentrun.Call, now state) error {
	if c.Precondition == nil {
		return nil
	}
	var saw state
	if err := json.Unmarshal(c.Precondition, &saw); err != nil || saw != now {
		return &agentrun.PreconditionFailed{}
	}
	return nil
}

// A found is an open file as it is now.
type found struct {
	state
	size     int64
	modified time.Time
	text     []byte // its content, if it is no longer than [maxRead]
}

// look reads the whole file, from where it is open.
func look(ctx context.Context, f *os.File) (found, error) {
	info, err := f.Stat()
	if err != nil {
		return found{}, err
	}
	id, err := identity(f)
	if err != nil {
		return found{}, err
	}
	sum := sha256.New()
	var text bytes.Buffer
	n, err := io.Copy(sum, io.TeeReader(reading{ctx, f}, limited{&text}))
	if err != nil {
		return found{}, err
	}
	now := found{size: n, modified: info.ModTime(), state: state{SHA256: hex.EncodeToString(sum.Sum(nil)), File: id}}
	if n <= maxRead {
		now.text = text.Bytes()
	}
	return now, nil
}

// reading is a reader that stops when its context ends.
type reading struct {
	ctx context.Context //nolint:containedctx // it is as short-lived as the read
	f   *os.File
}

func (r reading) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.f.Read(p)
}

// limited keeps the first [maxRead] bytes.
type limited struct{ to *bytes.Buffer }

func (l limited) Write(p []byte) (int, error) {
	l.to.Write(p[:min(len(p), maxRead-l.to.Len())])
	return len(p), nil
}

// lookAt opens the file at the path, and reads it. The caller closes it.
func (s set) lookAt(ctx context.Context, p string) (found, error) {
	here, err := s.enter(path.Dir(p), false)
	if err != nil {
		return found{}, err
	}
	defer here.Close() //nolint:errcheck // nothing was written
	f, err := openFile(here, path.Base(p), p, os.O_RDONLY)
	if err != nil {
		return found{}, err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	return look(ctx, f)
}

// sameFile returns [*agentrun.PreconditionFailed] unless the file of this folder
// is the one that people saw. It is open while it is compared with its name, so
// only a moment is left between the comparison and the removal: no system call removes
// a name only if it still belongs to a given file.
func (s set) sameFile(ctx context.Context, c agentrun.Call, here *os.Root, p string) error {
	if c.Precondition == nil {
		return nil
	}
	f, err := openFile(here, path.Base(p), p, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return holds(c, state{Absent: true})
	}
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // nothing was written
	now, err := look(ctx, f)
	if err != nil {
		return err
	}
	if err := holds(c, now.state); err != nil {
		return err
	}
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	return isEntry(here, path.Base(p), p, opened)
}

func (s set) previewRemove(ctx context.Context, _ agentrun.Call, in file) (agentrun.Preview, error) {
	now, err := s.lookAt(ctx, in.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return preview(state{Absent: true}, approvals.Fact{Label: "File", Value: "there is none"})
	}
	if err != nil {
		return agentrun.Preview{}, err
	}
	return preview(now.state, approvals.Fact{Label: "Size", Value: size(now.size)}, changedAt(now))
}

func (s set) previewWrite(ctx context.Context, _ agentrun.Call, in contents) (agentrun.Preview, error) {
	now, err := s.lookAt(ctx, in.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p, err := preview(state{Absent: true}, approvals.Fact{Label: "File", Value: "new"})
		return compared(p, in, nil, err)
	case err != nil:
		return agentrun.Preview{}, err
	}
	p, err := preview(state{SHA256: now.SHA256},
		approvals.Fact{Label: "Size now", Value: size(now.size)}, approvals.Fact{Label: "Size then", Value: size(int64(len(in.Content)))}, changedAt(now))
	if now.size > maxRead || !utf8.Valid(now.text) {
		return p, err // no text that could be read
	}
	return compared(p, in, now.text, err)
}

// preview has these facts and this precondition.
func preview(now state, facts ...approvals.Fact) (agentrun.Preview, error) {
	precondition, err := json.Marshal(now)
	return agentrun.Preview{Facts: facts, Precondition: precondition}, err
}

// compared adds to a preview how the new text differs from the old one. The diff
// does not name the file: a path can look like a line of it.
func compared(p agentrun.Preview, in contents, before []byte, err error) (agentrun.Preview, error) {
	if err != nil || len(in.Content) > maxDiff {
		return p, err
	}
	old := string(before)
	diff, err := udiff.ToUnifiedDiff("now", "then", old, udiff.Lines(old, in.Content), udiff.DefaultContextLines)
	if err != nil {
		return agentrun.Preview{}, fmt.Errorf("compare the texts: %w", err)
	}
	added, removed := 0, 0
	for _, h := range diff.Hunks {
		for _, l := range h.Lines {
			switch l.Kind {
			case udiff.Insert:
				added++
			case udiff.Delete:
				removed++
			case udiff.Equal:
			}
		}
	}
	p.Facts = append([]approvals.Fact{
		{Label: "Lines added", Value: strconv.Itoa(added)}, {Label: "Lines removed", Value: strconv.Itoa(removed)},
	}, p.Facts...)
	p.Content = diff.String()
	return p, nil
}

func changedAt(f found) approvals.Fact {
	return approvals.Fact{Label: "Last changed", At: f.modified}
}

// size is a number of bytes as people say it.
func size(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1000:
		return fmt.Sprintf("%d bytes", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1e3)
	case n < 1_000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
