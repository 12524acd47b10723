package blockkit

// AssignIDs gives a fresh block_id to every block and a fresh action_id to every
// interactive element that came without. It changes list.
func AssignIDs(list []any, fresh func() string) {
	for _, b := range list {
		o, ok := b.(object)
		if !ok {
			continue
		}
		// The block_id of a markdown block is ignored.
		if id, _ := o["block_id"].(string); id == "" || o["type"] == "markdown" {
			o["block_id"] = fresh()
		}
		for _, e := range elementsOf(o) {
			if id, _ := e["action_id"].(string); id == "" {
				e["action_id"] = fresh()
			}
		}
		AssignIDs(blocksWithin(o), fresh)
	}
}

// FillIn gives the texts and inputs below v what Slack stores with them when an app says
// nothing about it. It changes v.
func FillIn(v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			FillIn(item)
		}
	case object:
		for name, value := range storedWith[str(v["type"])] {
			if v[name] == nil {
				v[name] = value
			}
		}
		for _, item := range v {
			FillIn(item)
		}
	}
}

var storedWith = map[string]object{
	"plain_text": {"emoji": true},
	"mrkdwn":     {"verbatim": false},
	"input":      {"optional": false, "dispatch_action": false},
}

// blocksWithin returns the blocks that a block is made of.
func blocksWithin(b object) []any {
	switch b["type"] {
	case "carousel":
		cards, _ := b["elements"].([]any)
		return cards
	case "container":
		children, _ := b["child_blocks"].([]any)
		return children
	case "layout":
		var inner []any
		rows, _ := b["rows"].([]any)
		for _, row := range rows {
			r, _ := row.(object)
			items, _ := r["items"].([]any)
			for _, item := range items {
				it, _ := item.(object)
				inner = append(inner, it["block"])
			}
		}
		return inner
	}
	return nil
}

// elementsOf returns the interactive elements directly in a block.
func elementsOf(block object) []object {
	var found []object
	add := func(v any) {
		if e, ok := v.(object); ok {
			kind, _ := e["type"].(string)
			if kind != "image" && elements[kind] != nil {
				found = append(found, e)
			}
		}
	}
	each := func(v any) {
		items, _ := v.([]any)
		for _, it := range items {
			add(it)
		}
	}
	switch block["type"] {
	case "section":
		add(block["accessory"])
	case "input":
		add(block["element"])
	case "actions", "context_actions":
		each(block["elements"])
	case "card":
		each(block["actions"])
	case "data_table":
		rows, _ := block["rows"].([]any)
		for _, row := range rows {
			cells, _ := row.([]any)
			for _, cell := range cells {
				if o, _ := cell.(object); o["type"] == "action_cell" {
					add(o["element"])
				}
			}
		}
	}
	return found
}

// Walk visits every interactive element, also of nested blocks.
func Walk(list []any, visit func(block, element object)) {
	for _, b := range list {
		o, ok := b.(object)
		if !ok {
			continue
		}
		for _, e := range elementsOf(o) {
			visit(o, e)
		}
		Walk(blocksWithin(o), visit)
	}
}
