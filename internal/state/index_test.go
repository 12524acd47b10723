package state

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// Every id comes back as it was, in its own partition, and no two become one.
func TestShortIDsAreTheIDs(t *testing.T) {
	t.Parallel()
	unique := uuid.NewString()
	seen := make(map[string]string)
	for _, id := range []string{
		approvals.NewID("batch", 7, unique), approvals.NewID("run", 7, unique), approvals.NewID("sheet", 7, unique),
		approvals.NewID("thread", 7, unique), approvals.NewID("idle", 7, "threads"), approvals.NewID("batch", 7, "b"),
		approvals.NewID("other", 7, unique), approvals.NewID("batch", 7, strings.ToUpper(unique)), approvals.NewID("batch", 7, unique+"x"),
		approvals.NewID("batch", 7, unique+"-"+unique), "=batch-07-b", "b" + strings.Repeat("x", 16), "b", "=", "",
	} {
		short := shortID(id)
		require.Equal(t, id, longID(7, short), "%q", short)
		require.True(t, isShortID(short))
		require.NotContains(t, seen, short)
		seen[short] = id
		for _, k := range Kinds() {
			due := partition{n: 7}.due(k)
			require.Equal(t, id, due.id(7, due.member(id)))
		}
	}
	require.Len(t, shortID(approvals.NewID("batch", 7, unique)), 17)
	require.False(t, isShortID(approvals.NewID("batch", 7, unique)))
}

// A list is in the order in which requests were opened, and its range has no other list.
func TestAListHasItsRange(t *testing.T) {
	t.Parallel()
	var before string
	for i, at := range []time.Time{{}, time.UnixMicro(1), time.UnixMicro(255), time.UnixMicro(256), time.Unix(1_700_000_000, 0), time.Unix(1_700_000_000, 2000), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
		b := approvals.Batch{ID: approvals.BatchID(approvals.NewID("batch", 7, uuid.NewString())), OpenedAt: at}
		l := partition{n: 7}.list(approvals.WaitsForUser("U1"))
		require.Equal(t, place(b), l.place(l.member(place(b))))
		require.True(t, i < 2 || before < l.member(place(b)), at)
		before = l.member(place(b))
		require.Less(t, "user:U1\x00", before)
		require.Less(t, before, l.end()[1:])
		for _, other := range []approvals.ListKey{"user:U", "user:U10", "user:U1|", "user:", "user:U1\x01"} {
			o := partition{n: 7}.list(other)
			member := o.member(place(b))
			require.False(t, "user:U1\x00" <= member && member < l.end()[1:], other)
		}
	}
}

// What is stored stays as it is: these are the bytes that every version has to read.
func TestWhatIsStoredInSortedSets(t *testing.T) {
	t.Parallel()
	const id = "0f1e2d3c-4b5a-4978-8796-a5b4c3d2e1f0"
	at := scoreOf(time.UnixMicro(1_700_000_000_000_000))
	raw := "\x0f\x1e\x2d\x3c\x4b\x5a\x49\x78\x87\x96\xa5\xb4\xc3\xd2\xe1\xf0"
	p := partition{n: 7, base: "countersign:{p07}:"}
	for _, x := range []struct {
		kind   Kind
		id     string
		member string
		score  string
	}{
		{Runs, "run-07-" + id, "Ar" + raw, "170000000000001"},
		{Replies, "run-07-" + id, "Br" + raw, "732949953421313"},
		{Resumes, "batch-07-" + id, "Cb" + raw, "1295899906842625"},
		{Deliveries, "batch-07-" + id, "Db" + raw, "1858849860263937"},
		{Cards, "batch-07-" + id, "Eb" + raw, "2421799813685249"},
		{Deadlines, "batch-07-" + id, "Fb" + raw, "2984749767106561"},
		{Notices, "batch-07-" + id, "Gb" + raw, "3547699720527873"},
		{Homes, "batch-07-" + id, "Hb" + raw, "4110649673949185"},
		{Sheets, "sheet-07-" + id, "Is" + raw, "4673599627370497"},
		{Answers, "sheet-07-" + id, "Js" + raw, "5236549580791809"},
		{Announcements, "batch-07-" + id, "Kb" + raw, "5799499534213121"},
		{Webhooks, "call-07-x", "L=call-07-x", "6362449487634433"},
		{ToolChanges, "toolchanges-07-x", "M=toolchanges-07-x", "6925399441055745"},
		{Removals, "idle-07-threads", "N=idle-07-threads", "7488349394477057"},
	} {
		due := p.due(x.kind)
		require.Equal(t, "countersign:{p07}:due", string(due.key))
		require.Equal(t, x.member, due.member(x.id), x.kind)
		require.Equal(t, x.score, due.stored(at).String(), x.kind)
		require.Equal(t, x.kind, kindAt(float64(due.stored(at))))
	}
	require.Len(t, kindNumbers, len(Kinds()))
	b := approvals.Batch{ID: "batch-07-" + id, OpenedAt: time.UnixMicro(1_700_000_000_000_000)}
	l := p.list(approvals.AskedBy("U1"))
	require.Equal(t, "countersign:{p07}:list", string(l.key))
	require.Equal(t, "requester:U1\x00\x06\x0a\x24\x18\x1e\x40\x01b"+raw, l.member(place(b)))
	d := p.decided("U1")
	require.Equal(t, "countersign:{p07}:decided:U1", string(d.key))
	require.Equal(t, "b"+raw, d.member(string(b.ID)))
	require.Equal(t, []string{"64", "64+", "64/2"}, []string{apart, converting, joined})
}
