package slackapi

import "context"

// A guard decides about the calls that are made in a context.
type guard func(ctx context.Context) error

type guardKey struct{}

// Guarded returns a context in which a message is posted or updated, or a Home published,
// only if may returns nil right before that, as must the guards that ctx has already.
// Otherwise the call is not made and returns the error.
func Guarded(ctx context.Context, may func(ctx context.Context) error) context.Context {
	return context.WithValue(ctx, guardKey{}, guard(func(inner context.Context) error {
		if err := permitted(ctx); err != nil {
			return err
		}
		return may(inner)
	}))
}

// permitted asks the guards of the context.
func permitted(ctx context.Context) error {
	if may, ok := ctx.Value(guardKey{}).(guard); ok {
		return may(ctx)
	}
	return nil
}
