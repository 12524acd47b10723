package card

import (
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Names mentions people, as mrkdwn.
func Names(ids []approvals.UserID) string {
	if len(ids) == 0 {
		return "somebody"
	}
	var mentions []string
	for i, id := range ids {
		if i == blockkit.NamesShown {
			mentions = append(mentions, blockkit.Number(len(ids)-i)+" more")
			break
		}
		mentions = append(mentions, blockkit.Person(id))
	}
	return blockkit.List(mentions)
}
