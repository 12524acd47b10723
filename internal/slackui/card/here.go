package card

import (
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// HereView lists the requests of a thread, each with its way to the review, and
// says how many are left out.
func HereView(found []OpenCalls, hidden int, now time.Time) slack.ModalViewRequest {
	h := Home{Now: now}
	blocks := []slack.Block{slack.NewSectionBlock(blockkit.Ours(blockkit.Count(len(found), "request")+" "+blockkit.Verb(len(found), "waits")+" for signatures in this thread."), nil, nil)}
	for _, p := range found {
		blocks = append(blocks, h.row(p, blockkit.Ours("Asked by "+blockkit.Person(p.Batch.Requester)+" · "+h.ends(p)), h.progress(p))...)
	}
	if hidden > 0 {
		blocks = append(blocks, blockkit.Small(blockkit.Count(hidden, "more request")+" "+blockkit.Verb(hidden, "waits")+" here that you may not read, or of which Slack did not say whether you may."))
	}
	v := blockkit.Notice("")
	v.Blocks = slack.Blocks{BlockSet: blocks}
	return v
}
