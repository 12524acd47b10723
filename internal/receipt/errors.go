package receipt

import "errors"

// What callers branch on.
var (
	ErrMalformed  = errors.New("this is not a receipt")
	ErrUnknownKey = errors.New("no known key has signed the receipt")
	ErrSignature  = errors.New("the signature of the receipt is wrong")
	ErrStatement  = errors.New("the statement is not valid")
	ErrNotUsable  = errors.New("the receipt does not permit the call to run")
	ErrOtherCall  = errors.New("the receipt is about another call")
	ErrKey        = errors.New("the key is not usable")
)
