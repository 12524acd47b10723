package agentrun

import (
	"encoding/json"
	"time"
)

// Remains are what a surface says about a remote run whose thread is to be removed,
// because it ended long ago.
type Remains struct {
	// Until is when nobody can use the run any more; before that its thread stays.
	// The zero time says that nobody can now.
	Until time.Time
	// Used is when it was used last; zero if that is not known to be after its end.
	Used time.Time
	// Names are the memos by which the run is found. They stay for [NamesKept].
	Names []MemoRef
	// Marker takes the place of one memo of the run and stays for [NamesKept], so
	// that a request that comes again is known and does not run twice.
	Marker MemoChange
}

// NamesKept is how long it stays known that a removed remote run existed.
const NamesKept = 365 * 24 * time.Hour

// A MemoRef names a memo of a surface.
type MemoRef struct{ ID, Surface string }

// A MemoChange is new content of a memo that has this version, 0 if there is none yet.
// The zero value is none.
type MemoChange struct {
	MemoRef

	Version int64
	Data    json.RawMessage
	// Set and Drop are the parts of the memo, by their names, that are written and
	// removed with it. The others stay as they are.
	Set  map[string]json.RawMessage
	Drop []string
}
