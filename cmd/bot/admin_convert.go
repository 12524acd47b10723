package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/countersign/countersign/internal/state"
)

func adminConvert(ctx context.Context, in *call) error {
	return act(ctx, in, func(a admin, _ []string) (done, error) { return a.convert(ctx) })
}

// convert changes the layout of a store of an older version to that of this one.
func (a admin) convert(ctx context.Context) (done, error) {
	moved, err := a.store.Convert(ctx)
	switch {
	case errors.Is(err, state.ErrEmptied):
		return done{}, errors.New("there is no store to convert: a bot that starts on this Redis makes a new one")
	case errors.Is(err, state.ErrConverting):
		return done{}, fmt.Errorf("after %s: %w", entriesMoved(moved), err)
	case err != nil:
		return done{}, err
	case moved == 0:
		return done{"the store has the layout of this version", map[string]any{"moved": 0}}, nil
	}
	return done{"the store has the layout of this version now: " + entriesMoved(moved), map[string]any{"moved": moved}}, nil
}

func entriesMoved(n int) string { return counted(n, "entry was moved", "entries were moved") }
