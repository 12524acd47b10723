package policy

import (
	"github.com/countersign/countersign/internal/approvals"
)

// A Roster is a snapshot of who is there and in which group.
type Roster struct {
	People map[approvals.UserID]Standing
	Groups map[approvals.GroupID][]approvals.UserID // user groups, and channels by their members
}

// Standing says when a person is heard. Somebody without one never is.
type Standing string

// The standings.
const (
	Member Standing = "member" // signs for themselves and as a member of groups
	Guest  Standing = "guest"  // signs only where a quorum names them
	Gone   Standing = "gone"   // a deactivated account or a bot: never signs
)

// ReadRoster reads a roster from a YAML file.
func ReadRoster(path string) (*Roster, error) { return nil, errNotRead }

// ReadTools reads tools from a JSON file: the answer of MCP's tools/list, with
// a mapping of agents to the names of their tools beside it.
func ReadTools(path string) ([]Tool, error) { return nil, errNotRead }
