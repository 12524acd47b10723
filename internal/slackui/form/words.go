package form

// The words of the form in which arguments are edited, and of the input for a
// reason. What the tool and its schema say is beside them.

// The form in which arguments are edited.
const (
	editTitle         = "Edit arguments"
	editSave          = "Save changes"
	cancel            = "Cancel"
	editUntouched     = "Values that you don't touch stay exactly as they are."
	editClears        = "If you change something, the decisions of "
	editCleared       = " no longer count."
	editOthersApprove = "You can't approve your own edit: someone else must."
	editKeptMore      = "more value"
	editNotHere       = " can't be edited here."
	editStays         = ". It stays as it is."
	editApprove       = "Approve as changed"
	editApproval      = "Your approval"
	whyApprove        = "Why do you approve it?"
	whyApproveHint    = "Required if you approve. Everyone who sees the card will read it."
)

// Of a call of a remote agent: a command whose directory nobody knows, and what is
// in front of the server of its tool.
const (
	unplaced = "The agent didn't say in which directory it runs."
	hosted   = "The model provider runs this call, so its arguments can't be edited."
	ofServer = "The tool is of the MCP server "
)

// What is said of one value.
const (
	allArguments = "All arguments"
	chooseOne    = "Choose one"
	keepSecret   = "Leave empty to keep the value"
	hiddenEmpty  = "Hidden. It has no value now."
	hiddenNow    = "Hidden. It now has "
	hiddenJSON   = " Write it as JSON."
	hintJSON     = "Write it as JSON."
	hintWhole    = "A whole number."
	hintNumber   = "A number."
	hintNoValue  = "Leave empty for no value."
	hintNone     = "It has no value now."
	noValue      = "No value"
	keptHidden   = "has hidden values"
	keptLong     = "is too long for a form ("
)

// What is wrong with one value.
const (
	needed      = "This is required."
	needsNumber = "Enter a number, such as 12, -3.5 or 1e6."
	needsWhole  = "Enter a whole number, such as 12 or -3."
	needsDate   = "Choose a date."
	needsChoice = "Choose one of these."
	needsJSON   = "Enter the new value as JSON."
	badJSON     = "This isn't valid JSON: "
	badJSONMore = "it isn't one value"
	badJSONLine = "there is an error on line "
	badJSONText = ". A text needs double quotes, such as \"a text\""
)

// Reasons.
const (
	whyNot            = "Why not?"
	whyNotExample     = "For example: use the archive instead"
	whyApproveExample = "For example: checked against today's backup"
)
