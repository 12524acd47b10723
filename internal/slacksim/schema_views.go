package slacksim

const maxViewBytes = 250 * 1024

var viewRules = map[surface]map[string]rule{}

func init() { // after blocks
	common := []field{
		need("type", anyText), may("private_metadata", text(0, 3000)),
		may("callback_id", identifier), may("external_id", identifier),
	}
	viewRules[onModal] = map[string]rule{"modal": also(shape(append([]field{
		need("title", plain(24)), may("submit", plain(24)), may("close", plain(24)),
		need("blocks", viewBlocks(onModal)),
		may("clear_on_close", boolean), may("notify_on_close", boolean),
	}, common...)...), submitForInputs)}
	viewRules[onHome] = map[string]rule{"home": shape(append([]field{
		need("blocks", viewBlocks(onHome)),
	}, common...)...)}
}

func viewBlocks(on surface) rule {
	return func(c *checker, v any, at string) { blocksOn(on, 1, maxViewBlocks)(c, v, at) }
}

func submitForInputs(c *checker, o object, _ string) {
	if _, has := o["submit"]; has {
		return
	}
	for _, at := range c.inputs {
		c.fail(at+"/input", "must define `submit` to use an `input` block in modals")
	}
}

func newChecker(on surface) *checker {
	return &checker{surface: on, blockIDs: map[string]bool{}, actions: map[string]bool{}}
}

// checkView returns what is wrong with a view payload.
func checkView(on surface, view object) []string {
	c := newChecker(on)
	typed(viewRules[on])(c, view, "/view")
	return c.problems
}

// assignIDs gives a block_id to every block and an action_id to every
// interactive element that came without. It changes list.
func assignIDs(list []any) {
	for _, b := range list {
		o, ok := b.(object)
		if !ok {
			continue
		}
		// The block_id of a markdown block is ignored.
		if id, _ := o["block_id"].(string); id == "" || o["type"] == "markdown" {
			o["block_id"] = shortID()
		}
		for _, e := range elementsOf(o) {
			if id, _ := e["action_id"].(string); id == "" {
				e["action_id"] = shortID()
			}
		}
		assignIDs(blocksWithin(o))
	}
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

func shortID() string {
	return randomFrom("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+=", 5)
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
	}
	return found
}

// walkElements visits every interactive element, also of nested blocks.
func walkElements(list []any, visit func(block, element object)) {
	for _, b := range list {
		o, ok := b.(object)
		if !ok {
			continue
		}
		for _, e := range elementsOf(o) {
			visit(o, e)
		}
		walkElements(blocksWithin(o), visit)
	}
}
