package approvals

// Checked is the answer of the check of a rule: a service that the rule names and that is
// asked about the call. The zero value means that the rule names no check. Said is the
// text of the service, for people who may read the arguments.
type Checked struct {
	Check  string // its name in the configuration
	Answer CheckAnswer
	Said   Quote
}

// CheckAnswer is what a check says about a call that its rule would permit or ask
// about. It can only make the ruling stricter.
type CheckAnswer string

// The answers of a check. The empty one is none.
const (
	CheckOK     CheckAnswer = "ok"     // the ruling is that of the rule
	CheckAsk    CheckAnswer = "ask"    // people must approve the call
	CheckDeny   CheckAnswer = "deny"   // the call does not run
	CheckFailed CheckAnswer = "failed" // there was no valid answer, so the rule could not be judged
)

// A CheckedCall is a call that people are asked about, with what the check of its
// rule answered.
type CheckedCall struct {
	Call   ToolCallID  `json:"call"`
	Check  string      `json:"check"`
	Answer CheckAnswer `json:"answer"`
}
