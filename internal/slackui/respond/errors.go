package respond

import (
	"errors"
)

// ErrCounted is a person who says again what they have said.
var ErrCounted = errors.New("already counted")

// ErrNoForm is a call whose arguments no form can change.
var ErrNoForm = errors.New("no form for these arguments")

// ErrForm is a form that Slack did not open.
var ErrForm = errors.New("form not opened")
