package approvals

// Checked is what a service said about a call, which a rule of the policy names as
// its check. The zero value is that the rule names none. Said is the words of the
// service, for those who may read the arguments.
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
	CheckFailed CheckAnswer = "failed" // there was no answer, so that the rule could not judge the call
)

// A CheckedCall is a call that people are asked about, with what the check of its
// rule answered.
type CheckedCall struct {
	Call   ToolCallID  `json:"call"`
	Check  string      `json:"check"`
	Answer CheckAnswer `json:"answer"`
}
