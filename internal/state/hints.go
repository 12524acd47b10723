package state

import (
	"sync"
	"time"

	"github.com/countersign/countersign/internal/approvals"
)

// places are partitions.
type places [approvals.Partitions]bool

// hints are what a loop has not taken yet of what its sweeper told it.
type hints struct {
	ready chan struct{}

	mu  sync.Mutex
	all told
}

type told struct {
	committed places                      // someone has just committed there
	awaited   []seen                      // which people wait for: someone has just committed these
	found     places                      // there is work
	later     [approvals.Partitions]score // there will be; 0: none is known
	swept     bool                        // Redis answers
}

func newHints() *hints { return &hints{ready: make(chan struct{}, 1)} }

// committed says that there is work where the entry is: the entry itself if it has an id.
func (h *hints) committed(e seen) {
	h.change(func(t *told) {
		n := e.partition
		switch {
		case e.id != "" && len(t.awaited) < mostAwaited:
			t.awaited = append(t.awaited, e)
		case e.from != 0:
			t.committed[n], t.later[n] = true, earliest(t.later[n], e.from)
		default:
			t.committed[n], t.found[n] = true, true
		}
	})
}

// later says when there will be work in a partition.
func (h *hints) later(partition int, at score) {
	h.change(func(t *told) { t.later[partition] = earliest(t.later[partition], at) })
}

// tell adds what a sweep found.
func (h *hints) tell(found told) {
	h.change(func(t *told) {
		for n := range found.found {
			t.found[n] = t.found[n] || found.found[n]
			t.later[n] = earliest(t.later[n], found.later[n])
		}
		t.swept = t.swept || found.swept
	})
}

// first notes when the first entry of a partition is due.
func (t *told) first(partition int, at score, now time.Time) {
	if at <= scoreOf(now) {
		t.found[partition] = true
	} else {
		t.later[partition] = at
	}
}

func (h *hints) change(what func(*told)) {
	h.mu.Lock()
	what(&h.all)
	h.mu.Unlock()
	select {
	case h.ready <- struct{}{}:
	default: // it is about to take them
	}
}

func (h *hints) take() told {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.all
	h.all = told{}
	return t
}
