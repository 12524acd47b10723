package blockkit

import "fmt"

// Surface is where blocks are shown; not every block is allowed everywhere.
type Surface string

// The surfaces.
const (
	OnMessage Surface = "message"
	OnModal   Surface = "modal"
	OnHome    Surface = "home"
)

// Checker collects what is wrong with one payload, in Slack's wording. What
// is counted per payload (ids, text, tables) is counted over every part that
// one checker is given.
type Checker struct {
	surface  Surface
	problems []string
	blockIDs map[string]bool
	actions  map[string]bool // action_ids seen in the block
	markdown int             // characters of markdown blocks
	text     int             // characters of every text
	tables   int
	charts   int
	cells    int      // characters of the cells of tables
	focused  bool     // an element has focus_on_load
	inputs   []string // where input blocks are
}

// NewChecker is for one payload on one surface.
func NewChecker(on Surface) *Checker {
	return &Checker{surface: on, blockIDs: map[string]bool{}, actions: map[string]bool{}}
}

// Problems are what was found so far, in the order of the payload.
func (c *Checker) Problems() []string { return c.problems }

// Text is how many characters all texts have together.
func (c *Checker) Text() int { return c.text }

// Tables is how many table blocks there are.
func (c *Checker) Tables() int { return c.tables }

// Blocks checks the blocks of a message, or of one of its attachments.
func (c *Checker) Blocks(v any, at string) { blocksOn(c.surface, 0, maxMessageBlocks)(c, v, at) }

// View checks a view payload.
func (c *Checker) View(view map[string]any) { typed(viewRules[c.surface])(c, view, "/view") }

// Chunks checks the pieces of a streamed message.
func (c *Checker) Chunks(v []any, at string) {
	list(0, unlimited, chunk)(c, append([]any{}, v...), at)
}

const maxPrompts = 4

// Prompts checks the suggested prompts of an assistant's thread.
func (c *Checker) Prompts(v any, at string) {
	list(1, maxPrompts, shape(need("title", anyText), need("message", anyText)))(c, v, at)
}

// Options checks an app's answer to a query for the options of a menu.
func (c *Checker) Options(answer map[string]any) {
	also(shape(may("options", list(0, 100, option)), may("option_groups", list(0, 100, optionGroup))),
		oneOf("options", "option_groups"))(c, answer, "")
}

// CheckView returns what is wrong with a view payload.
func CheckView(on Surface, view map[string]any) []string {
	c := NewChecker(on)
	c.View(view)
	return c.Problems()
}

func (c *Checker) fail(at, format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...)+" [json-pointer:"+at+"]")
}
