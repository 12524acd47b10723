package agentrun

import "fmt"

// Limits end a run before it does more: they are checked before every request,
// before any call is executed, and before people are asked about calls, over a
// run and those that it resumes. 0 means the default, a negative number none.
type Limits struct {
	Requests    int // default 50
	ToolCalls   int // executed calls; default 200
	TotalTokens int // default none
}

// stop returns words for people if the model could not be asked once more, or
// if so many more calls are too many. No calls run that could not be followed
// by a request: the model would never learn what they did. toSign are the calls
// about which people are to be asked: they count as if all of them were
// approved, so that people are not asked about calls that may not run then.
// A model that never says how many tokens it used does not get past a limit of tokens.
func (l Limits) stop(used Usage, calls, toSign int) (words string) {
	requests, toolCalls := orDefault(l.Requests, 50), orDefault(l.ToolCalls, 200)
	tokens := used.InputTokens + used.OutputTokens
	switch {
	case requests > 0 && used.Requests+1 > requests:
		return fmt.Sprintf("The run has reached its limit of %s to the model.", plural(requests, "request"))
	case l.TotalTokens > 0 && tokens >= l.TotalTokens:
		return fmt.Sprintf("The run has reached its limit of %s.", plural(l.TotalTokens, "token"))
	case l.TotalTokens > 0 && used.Requests > 0 && tokens == 0:
		return fmt.Sprintf("The run has a limit of %s, but the model provider doesn't say how many it has used. "+
			"Ask your Countersign admin to have it report usage, or to remove the limit.", plural(l.TotalTokens, "token"))
	case toolCalls > 0 && calls > 0 && used.ToolCalls+calls > toolCalls:
		return fmt.Sprintf("The run would exceed its limit of %s, so none of the last calls was run.", plural(toolCalls, "tool call"))
	case toolCalls > 0 && toSign > 0 && used.ToolCalls+calls+toSign > toolCalls:
		return fmt.Sprintf("The run would exceed its limit of %s if everything that needs approval were approved, "+
			"so nobody was asked.", plural(toolCalls, "tool call"))
	}
	return ""
}

// plural counts things.
func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}

func orDefault(n, def int) int {
	if n == 0 {
		return def
	}
	return n
}
