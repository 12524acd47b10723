package card

import (
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// Names mentions people.
func Names(ids []approvals.UserID) blockkit.Mrkdwn {
	if len(ids) == 0 {
		return blockkit.Ours("someone")
	}
	var mentions []blockkit.Mrkdwn
	for i, id := range ids {
		if i == blockkit.NamesShown {
			mentions = append(mentions, blockkit.Ours("%s more", blockkit.Num(len(ids)-i)))
			break
		}
		mentions = append(mentions, blockkit.Person(id))
	}
	return blockkit.And(mentions)
}
