package policy

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// Live rules by the current policy of a path, and follows its changes. A file
// that is broken changes nothing: the policy before it stays.
type Live struct {
	path    string
	options Options
	report  func(ctx context.Context, old, new *Policy, err error)
	current atomic.Pointer[Policy]
}

// Open loads the policy at the path. Report is told of every change that was
// taken, with a nil error, and once per content of every one that was not.
func Open(path string, o Options, report func(ctx context.Context, old, new *Policy, err error)) (*Live, error) {
	return nil, errNotRead
}

// Current returns the policy that rules now.
func (l *Live) Current() *Policy { return l.current.Load() }

// Reload reads the path and takes what it finds, if that is sound. It reports
// as [Open] says, and returns the error too.
func (l *Live) Reload(ctx context.Context) error { return errNotRead }

// Watch looks at the content every so often, until the context ends. It sees
// replaced files, directories and symbolic links alike.
func (l *Live) Watch(ctx context.Context, every time.Duration) {}

// Rule implements [approvals.Policy].
func (l *Live) Rule(ctx context.Context, q approvals.Proposal) (approvals.Ruling, error) {
	return l.Current().Rule(ctx, q)
}

// Strictest implements [approvals.Policy].
func (l *Live) Strictest(at time.Time) approvals.Requirement { return l.Current().Strictest(at) }
