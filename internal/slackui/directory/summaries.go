package directory

import (
	"context"
	"sync"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/card"
	"github.com/countersign/countersign/internal/slackui/memo"
	"github.com/countersign/countersign/internal/slackui/slackapi"
	"github.com/countersign/countersign/internal/summary"
)

// Summarize says of each request what its leading call does, for the person.
// A summary shows values of arguments, so what the person may not read keeps
// only the name of its tool. That is also so for what cannot be looked up or
// loaded now: a list is never late or missing because of its summaries.
//
// It is for the rows of one page. Every account, group and absence is read once
// for all of them, and the arguments of one call a row in one round trip.
func (d *Directory) Summarize(ctx context.Context, who Who, rows []*card.OpenCalls) {
	asking, cancel := context.WithTimeout(ctx, slackapi.LookupTime)
	defer cancel()
	once := *d
	once.Memos = &readOnce{Store: d.Memos, known: map[[2]string]remembrance{}}
	d.summarize(ctx, rows, func(b approvals.Batch) Reader {
		r, _ := once.MayRead(asking, who, b) // refused, or not known: it reads nothing
		return r
	})
}

// SummarizeIn is Summarize for everybody who reads a channel.
func (d *Directory) SummarizeIn(ctx context.Context, channel string, rows []*card.OpenCalls) {
	d.summarize(ctx, rows, func(b approvals.Batch) Reader { return d.Audience(b, channel) })
}

func (d *Directory) summarize(ctx context.Context, rows []*card.OpenCalls, reader func(approvals.Batch) Reader) {
	readers := map[approvals.BatchID]Reader{}
	var keys []approvals.CallKey
	for _, row := range rows {
		b := row.Batch
		if _, asked := readers[b.ID]; !asked {
			readers[b.ID] = reader(b)
		}
		if readers[b.ID].Reads(b) {
			keys = append(keys, approvals.CallKey{Batch: b.ID, Call: row.Leading().Call})
		}
	}
	if len(keys) == 0 {
		return
	}
	calls, err := d.calls.CallsOf(ctx, keys)
	if err != nil {
		return
	}
	for _, row := range rows {
		a := row.Leading()
		if call, ok := calls[approvals.CallKey{Batch: row.Batch.ID, Call: a.Call}]; ok {
			row.Does = summary.Of(a.Summary, a.Call.Name, call.Args, a.WriteOnly)
		}
	}
}

// readOnce remembers each memo for as long as one answer takes.
type readOnce struct {
	memo.Store
	mu    sync.Mutex
	known map[[2]string]remembrance
}

type remembrance struct {
	data    []byte
	version int64
	err     error
}

func (m *readOnce) Memo(ctx context.Context, id, surface string) ([]byte, int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := [2]string{id, surface}
	r, ok := m.known[at]
	if !ok {
		r.data, r.version, r.err = m.Store.Memo(ctx, id, surface)
		m.known[at] = r
	}
	return r.data, r.version, r.err
}

func (m *readOnce) CommitMemo(ctx context.Context, id, surface string, data []byte, version, drawn int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, [2]string{id, surface})
	return m.Store.CommitMemo(ctx, id, surface, data, version, drawn)
}
