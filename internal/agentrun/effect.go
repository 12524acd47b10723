package agentrun

import "cmp"

// Effect says what a second execution of a call would do. It decides what becomes
// of a call that a worker began and did not finish.
type Effect string

// The effects. The empty one is EffectNone for a tool, and says nothing where
// something else may say it.
const (
	EffectNone       Effect = "none"       // it may take effect twice: people decide
	EffectPure       Effect = "pure"       // none: it changes nothing, so it is run again
	EffectIdempotent Effect = "idempotent" // none, because the tool passes on [Call].Key: it is run again
	EffectLookup     Effect = "lookup"     // the tool can say whether it happened, see [Spec].Lookup
)

// Effects are all that a configuration may say.
var Effects = []Effect{EffectNone, EffectPure, EffectIdempotent, EffectLookup}

// A Looked is what a tool says of a call that was begun.
type Looked struct {
	Happened Happened
	Result   Result // of a call that happened
}

// Happened says whether a call took effect. The zero value is that it is not
// known.
type Happened string

// What a tool can know.
const (
	HappenedUnknown Happened = ""
	HappenedYes     Happened = "yes"
	HappenedNo      Happened = "no"
)

// effect returns the effect that is in force for calls of a tool: that of the
// configuration, else that of the tool. For a tool without a lookup, EffectLookup counts
// as EffectNone.
func (a Agent) effect(s Spec) Effect {
	switch e := cmp.Or(a.Effects[s.Name], s.Effect, EffectNone); e {
	case EffectPure, EffectIdempotent:
		return e
	case EffectLookup:
		if s.Lookup != nil {
			return e
		}
	case EffectNone:
	}
	return EffectNone
}
