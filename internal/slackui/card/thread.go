package card

import (
	"time"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// ThreadView lists the requests of a thread, each with a button that opens its
// review. hidden is how many others the person may not read.
func ThreadView(found []OpenCalls, hidden int, now time.Time) slack.ModalViewRequest {
	h := Home{Now: now}
	blocks := []slack.Block{blockkit.Section(blockkit.Ours("%s %s for signatures in this thread.", blockkit.Counted(len(found), "request"), blockkit.Plural(len(found), "waits", "wait")))}
	for _, p := range found {
		blocks = append(blocks, h.row(p, blockkit.Ours("Asked by %s · %s", blockkit.Person(p.Batch.Requester), h.ends(p)).Object(), h.progress(p))...)
	}
	if hidden > 0 {
		blocks = append(blocks, blockkit.Small(blockkit.Ours("%s %s here that you may not read, or of which Slack did not say whether you may.",
			blockkit.Counted(hidden, "more request"), blockkit.Plural(hidden, "waits", "wait"))))
	}
	return blockkit.Message{Blocks: blocks}.View()
}
