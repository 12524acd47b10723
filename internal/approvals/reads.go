package approvals

// Reads are documents that one request is about to read. They are pointers of a
// client, so any of them may not exist.
type Reads struct {
	Runs    []RunID
	Batches []BatchID
	Args    []ArgsKey
	Memos   []MemoKey
}

// A MemoKey is where an adapter keeps something beside a document.
type MemoKey struct{ ID, Surface string }
