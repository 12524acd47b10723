package blockkit

var viewRules = map[Surface]map[string]rule{}

func init() { // after blocks
	common := []field{
		need("type", anyText), may("private_metadata", text(0, 3000)),
		may("callback_id", identifier), may("external_id", identifier),
	}
	viewRules[OnModal] = map[string]rule{"modal": also(shape(append([]field{
		need("title", plain(24)), may("submit", plain(24)), may("close", plain(24)),
		need("blocks", viewBlocks(OnModal)),
		may("clear_on_close", boolean), may("notify_on_close", boolean),
	}, common...)...), submitForInputs)}
	viewRules[OnHome] = map[string]rule{"home": shape(append([]field{
		need("blocks", viewBlocks(OnHome)),
	}, common...)...)}
}

func viewBlocks(on Surface) rule {
	return func(c *Checker, v any, at string) { blocksOn(on, 1, maxViewBlocks)(c, v, at) }
}

func submitForInputs(c *Checker, o object, _ string) {
	if _, has := o["submit"]; has {
		return
	}
	for _, at := range c.inputs {
		c.fail(at+"/input", "must define `submit` to use an `input` block in modals")
	}
}
