package policy

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Live rules by the current policy of a path, and follows its changes. A broken
// file is rejected, and the previous policy stays active. Content must be the
// same at two looks in a row before it is taken, at the start too if it was written
// lately: a directory that is being written may lack a file with a deny for a moment.
type Live struct {
	path    string
	options Options
	report  func(ctx context.Context, old, current *Policy, err error)
	current atomic.Pointer[Policy]

	mu     sync.Mutex // guards what follows, and that one change is taken at a time
	seen   [sha256.Size]byte
	failed string            // the problem with the content that was seen, if it was one
	fresh  [sha256.Size]byte // content that one look saw; taken if the next one agrees
}

// Open loads the policy at the path. If it was written in the last two seconds, Open
// waits until it stays as it is for half a second. Report, if not nil, is called for every
// change that is taken, with a nil error, and once for each content that is
// rejected: then both policies are the one that stays in force, and so they are, with a nil
// error, when its content is there again. [Lifted] says which rules a change removed.
func Open(ctx context.Context, path string, o Options, report func(ctx context.Context, old, current *Policy, err error)) (*Live, error) {
	files, err := settled(ctx, path, o.now())
	if err != nil {
		return nil, err
	}
	p, err := compile(files, o)
	if err != nil {
		return nil, err
	}
	l := &Live{path: path, options: o, report: report, seen: p.content}
	l.current.Store(p)
	return l, nil
}

// Current returns the policy that rules now.
func (l *Live) Current() *Policy { return l.current.Load() }

// Retool judges by these options from now on, after tools have changed. A policy at the path
// that was rejected before, maybe because it is for these tools, is taken with them. If what
// is at the path does not fit them, or is being changed, it is an error and nothing changes.
func (l *Live) Retool(ctx context.Context, o Options) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	files, err := read(l.path)
	if err != nil {
		return err
	}
	sum, old := digest(files), l.Current()
	if sum != old.content && (sum != l.seen || sum != l.fresh) { // no two looks have seen it
		return errSettling
	}
	p, err := compile(files, o)
	if err != nil {
		return err
	}
	l.options = o
	l.current.Store(p)
	if sum != old.content {
		l.failed = ""
		if l.report != nil {
			l.report(ctx, old, p, nil)
		}
	}
	return nil
}

// settle is how long a start and a reload wait between two looks, and maxLooks how many
// there are until two in a row agree.
const (
	settle   = 500 * time.Millisecond
	maxLooks = 20
)

// lately is how long a path must not have been written to for one look to be enough: by
// then another one would have come.
const lately = 4 * settle

// writtenLately reports whether the path, or anything in it, may still be being written,
// by the times of the file system. One that is ahead of the clock counts as now.
func writtenLately(path string, files []source, now time.Time) bool {
	since := now.Add(-lately)
	written := func(at string) bool {
		info, err := os.Stat(at)
		return err != nil || info.ModTime().After(since)
	}
	return written(path) || slices.ContainsFunc(files, func(f source) bool { return written(f.path) })
}

// settled reads the path, and again until two looks in a row agree if it was written
// lately.
func settled(ctx context.Context, path string, now time.Time) ([]source, error) {
	var before [sha256.Size]byte
	for look := range maxLooks {
		files, err := read(path)
		if err != nil {
			return nil, err
		}
		sum := digest(files)
		if sum == before || look == 0 && !writtenLately(path, files, now) {
			return files, nil
		}
		before = sum
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(settle):
		}
	}
	return nil, errSettling
}

// Reload reads the path and loads what it finds, if that is valid and does not change for
// half a second. A policy that is loaded already is not loaded again. Reload reports as
// [Open] says, but what it rejects each time, and returns the error too.
func (l *Live) Reload(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fresh = [sha256.Size]byte{}
	for range maxLooks {
		err := l.look(ctx, true)
		if !errors.Is(err, errSettling) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settle):
		}
	}
	l.refused(ctx, [sha256.Size]byte{}, errSettling)
	return errSettling
}

// Watch reads the content at this interval until the context ends, and loads it
// once two reads in a row agree. It compares the content alone, so it notices
// replaced files and swapped links alike.
func (l *Live) Watch(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			l.mu.Lock()
			_ = l.look(ctx, false) // reported, or looked at again
			l.mu.Unlock()
		}
	}
}

// look takes what is at the path if it is new, and was there at the look before
// this one; until then it is errSettling. What was seen before is left alone,
// unless again wants its problem once more.
func (l *Live) look(ctx context.Context, again bool) error {
	files, err := read(l.path)
	if err != nil {
		l.fresh = [sha256.Size]byte{}
		if again || l.failed != err.Error() {
			l.refused(ctx, [sha256.Size]byte{}, err)
		}
		return err
	}
	sum := digest(files)
	if current := l.Current(); sum == current.content {
		if l.failed != "" && l.report != nil {
			l.report(ctx, current, current, nil)
		}
		l.seen, l.failed, l.fresh = sum, "", sum
		return nil
	}
	if sum != l.fresh {
		l.fresh = sum
		return errSettling
	}
	if sum == l.seen && l.failed != "" && !again {
		return nil
	}
	p, err := compile(files, l.options)
	if err != nil {
		l.refused(ctx, sum, err)
		return err
	}
	old := l.current.Swap(p)
	l.seen, l.failed = sum, ""
	if l.report != nil {
		l.report(ctx, old, p, nil)
	}
	return nil
}

func (l *Live) refused(ctx context.Context, sum [sha256.Size]byte, err error) {
	l.seen, l.failed = sum, err.Error()
	if l.report != nil {
		l.report(ctx, l.Current(), l.Current(), err)
	}
}

// Lifted returns the names of the rules that deny or ask in the policy before and
// do neither in the one after it, in the order of the file: what they guarded
// may run now. A rule that is tried in shadow mode does neither. A rule that lost
// its check is one too.
func Lifted(before, after *Policy) []string {
	guards := func(p *Policy) []string {
		var all []string
		for _, r := range p.rules[:p.own] {
			if p.shadow || r.shadow {
				continue
			}
			if r.kind != KindAllow {
				all = append(all, r.name)
			}
			if r.check != "" {
				all = append(all, "the check "+r.check+" of "+r.name)
			}
		}
		return all
	}
	still := guards(after)
	return slices.DeleteFunc(guards(before), func(name string) bool { return slices.Contains(still, name) })
}

// Rule implements [approvals.Policy].
func (l *Live) Rule(ctx context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	return l.Current().Rule(ctx, q)
}

// Stated calls Stated of the current policy.
func (l *Live) Stated(agent, tool string) approvals.Severity { return l.Current().Stated(agent, tool) }

// CountsToday calls CountsToday of the current policy.
func (l *Live) CountsToday() bool { return l.Current().CountsToday() }

// Midnight calls Midnight of the current policy.
func (l *Live) Midnight(at time.Time) time.Time { return l.Current().Midnight(at) }

// Strictest implements [approvals.Policy].
func (l *Live) Strictest(at time.Time) approvals.Requirement { return l.Current().Strictest(at) }
