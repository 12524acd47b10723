package approvals

// Reads names the documents that one request is about to read. The ids may come from a
// client, so a document need not exist.
type Reads struct {
	Runs     []RunID
	Threads  []string // see [Batch.Thread]
	Messages []MessagesKey
	Batches  []BatchID
	Args     []ArgsKey
	Memos    []MemoKey
}

// A MemoKey names what an adapter keeps beside a document.
type MemoKey struct{ ID, Surface string }

// A MessagesKey names the messages of a thread from one on and before another, counted from 0.
type MessagesKey struct {
	Thread   string
	From, To int
}
