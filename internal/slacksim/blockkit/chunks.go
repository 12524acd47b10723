package blockkit

// chunk is one piece of a stream.
var chunk = typed(map[string]rule{
	"markdown_text": shape(need("type", anyText), need("text", text(0, MaxMarkdown))),
	// details and output are text here, and rich text in the card.
	"task_update": shape(need("type", anyText), need("id", text(1, 255)), need("title", text(1, 255)),
		may("status", enum("pending", "in_progress", "complete", "error")), may("details", anyText), may("output", anyText),
		may("sources", anything)),
	"plan_update": shape(need("type", anyText), need("title", text(1, 255))),
	"blocks": shape(need("type", anyText), need("blocks", func(c *Checker, v any, at string) {
		blocksOn(OnMessage, 1, maxMessageBlocks)(c, v, at)
	})),
})
