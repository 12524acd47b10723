package policy

import "errors"

// Why a rule could not be judged. The words go to people, and hold nothing of
// the arguments.
var (
	errArgs      = errors.New("the arguments could not be read")
	errNumber    = errors.New("a number in the arguments is too large or too small")
	errNaN       = errors.New("what its condition calculates is not a number")
	errUnlike    = errors.New("an argument has another type than what its condition compares it with")
	errRounded   = errors.New("a whole number in the arguments is too large to be compared exactly with the number in its condition")
	errMisfit    = errors.New("the arguments don't fit the schema of the tool")
	errRecased   = errors.New("an argument is named like another one but for upper and lower case")
	errRespelled = errors.New("an argument is named like one that the rule looks at but for upper and lower case")
	errMissing   = errors.New("something that its condition needs is missing")
	errCommand   = errors.New("what its command runs cannot be read from it")
	errCost      = errors.New("its condition would take too long")
	errDirectory = errors.New("the groups of the requester could not be looked up")
	errLedger    = errors.New("the calls of today could not be counted")
	errCheck     = errors.New("its check gave no answer that could be used")
	errNoManager = errors.New("the requester has no manager")
	errNoChannel = errors.New("the agent was not asked in a channel")
	errNotBool   = errors.New("its condition is neither true nor false")
	errEval      = errors.New("its condition could not be evaluated")
)

// errSettling is that content is new and not yet known to stay.
var errSettling = errors.New("the policy is still being written; it is loaded once it stops changing")
