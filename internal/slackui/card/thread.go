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
	blocks := []slack.Block{blockkit.Section(blockkit.Ours(sayInThread, blockkit.Counted(len(found), "request"), blockkit.Plural(len(found), "waits", "wait")))}
	for _, p := range found {
		blocks = append(blocks, h.row(p, h.openDetails(p, blockkit.Ours("requested by %s", blockkit.Person(p.Batch.Requester)))...)...)
	}
	if hidden > 0 {
		blocks = append(blocks, blockkit.Small(blockkit.Ours(sayNotReadable,
			blockkit.Counted(hidden, "more request"), blockkit.Plural(hidden, "waits", "wait"), blockkit.Plural(hidden, "it", "them"))))
	}
	return blockkit.Message{Blocks: blocks}.View()
}
