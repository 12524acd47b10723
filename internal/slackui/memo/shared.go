package memo

import (
	"context"
	"sync"
)

// Shared are records that the work of many documents looks at and changes, such as a
// list of all of them. Of a record that has not changed since this process has read it,
// only the version is read, and the changes that are made while another is stored are
// stored together. The zero value is ready to use.
type Shared[T any] struct {
	mu   sync.Mutex
	kept map[string]*kept[T]
}

// mostKept bounds how many records are kept in memory.
const mostKept = 64

// A kept record is what this process has read or stored last.
type kept[T any] struct {
	stores lock // held by the one who reads or stores it

	mu      sync.Mutex
	edits   []*edit[T] // to be stored
	record  *Record[T] // nil if it was not read yet; nobody changes it
	version int64
}

// An edit is a change that waits until it is stored.
type edit[T any] struct {
	change func(*T)
	done   bool
	after  *Record[T]
	err    error
}

// of returns the record with this id. If there are too many, it forgets another one.
func (s *Shared[T]) of(id string) *kept[T] {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[id]
	if k != nil {
		return k
	}
	if s.kept == nil {
		s.kept = map[string]*kept[T]{}
	}
	for other := range s.kept {
		if len(s.kept) < mostKept {
			break
		}
		delete(s.kept, other)
	}
	k = &kept[T]{stores: make(lock, 1)}
	s.kept[id] = k
	return k
}

func (k *kept[T]) is(version int64) *Record[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.version != version {
		return nil
	}
	return k.record
}

func (k *kept[T]) set(n Record[T], version int64) *Record[T] {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.record, k.version = &n, version
	return k.record
}

// Look returns the record as it is stored now. Others have the same one, so nobody may
// change it.
func (s *Shared[T]) Look(ctx context.Context, l Notes[T], id string) (*Record[T], error) {
	k := s.of(id)
	version, err := l.Memos.MemoVersion(ctx, id, l.Surface)
	if err != nil {
		return nil, err
	}
	if n := k.is(version); n != nil {
		return n, nil
	}
	if err := k.stores.within(ctx); err != nil {
		return nil, err
	}
	defer k.stores.Unlock()
	if n := k.is(version); n != nil { // it was read meanwhile
		return n, nil
	}
	n, version, err := l.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	return k.set(n, version), nil
}

// Edit is [Notes.Edit], together with the edits of others who wait for the same record,
// and with the same error. change may run more than once, and in another goroutine. Edit
// returns the record with the change, which nobody may change.
func (s *Shared[T]) Edit(ctx context.Context, l Notes[T], id string, change func(*T)) (*Record[T], error) {
	k, mine := s.of(id), &edit[T]{change: change}
	k.mu.Lock()
	k.edits = append(k.edits, mine)
	k.mu.Unlock()
	if err := k.stores.within(ctx); err != nil {
		return nil, err
	}
	defer k.stores.Unlock()
	if !mine.done {
		k.store(ctx, l, id)
	}
	return mine.after, mine.err
}

// store stores the edits that wait. The caller holds the lock.
func (k *kept[T]) store(ctx context.Context, l Notes[T], id string) {
	k.mu.Lock()
	all := k.edits
	k.edits = nil
	k.mu.Unlock()
	n, version, err := l.edit(ctx, id, func(body *T) {
		for _, e := range all {
			e.change(body)
		}
	}, l.store)
	var after *Record[T]
	if err == nil {
		after = k.set(n, version)
	}
	for _, e := range all {
		e.done, e.after, e.err = true, after, err
	}
}
