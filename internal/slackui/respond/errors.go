package respond

import (
	"errors"
)

// ErrCounted means that the person repeats the decision that they made.
var ErrCounted = errors.New("already counted")

// ErrNoForm means that no form can edit the arguments of the call.
var ErrNoForm = errors.New("no form for these arguments")

// ErrForm means that Slack did not open a form.
var ErrForm = errors.New("form not opened")
