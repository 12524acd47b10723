package directory

import (
	"context"
	"slices"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/countersign/countersign/internal/slackui/memo"
)

// mostGroups is how many groups are remembered.
const mostGroups = 500

// Groups remembers the groups that batches have named. It is needed because Slack
// has no method that lists the groups of a person. If what is remembered is lost, each
// group is learned again with the next change of a batch that names it.
type Groups struct {
	notes memo.Notes[groupsSeen]
	id    string
}

// Groups returns the groups that batches of the workspace have named.
func (d *Directory) Groups() Groups {
	return Groups{notes: memo.Notes[groupsSeen]{Memos: d.Memos, Surface: "groups", Now: d.Now, Derived: d.API.Log}, id: d.Key("groups", d.Team)}
}

// groupsSeen is the memo of [Groups], the newest last.
type groupsSeen struct {
	Groups []approvals.GroupID `json:"groups"`
}

// Key is the memo in which the groups are kept.
func (g Groups) Key() approvals.MemoKey { return approvals.MemoKey{ID: g.id, Surface: g.notes.Surface} }

func (g Groups) all(ctx context.Context) ([]approvals.GroupID, error) {
	n, _, err := g.notes.Load(ctx, g.id)
	return n.Body.Groups, err
}

// Learn remembers the groups that the batch names.
func (g Groups) Learn(ctx context.Context, b approvals.Batch) error {
	known, err := g.all(ctx)
	if err != nil {
		return err
	}
	fresh := slices.DeleteFunc(b.EverAsked().Groups, func(group approvals.GroupID) bool {
		return !blockkit.IDForm.MatchString(string(group)) || slices.Contains(known, group)
	})
	if len(fresh) == 0 {
		return nil
	}
	return g.notes.Edit(ctx, g.id, func(s *groupsSeen) {
		for _, group := range fresh {
			if !slices.Contains(s.Groups, group) {
				s.Groups = append(s.Groups, group)
			}
		}
		s.Groups = s.Groups[max(0, len(s.Groups)-mostGroups):]
	})
}
