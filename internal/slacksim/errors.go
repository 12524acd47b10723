package slacksim

import (
	"errors"
	"fmt"
)

// What the methods that act for a person can answer.
var (
	ErrNoSuch    = errors.New("no such thing in the workspace")
	ErrForbidden = errors.New("the person cannot do that")
	ErrBadInput  = errors.New("the input makes no sense")

	errNoChallenge = errors.New("the app did not answer url_verification with the challenge")

	errTrailing = errors.New("more than one JSON value")
)

func noSuch(kind, ref string) error { return fmt.Errorf("%w: %s %q", ErrNoSuch, kind, ref) }
