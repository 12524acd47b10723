package mcptool

import "time"

// pauses are between attempts at something that fails or does not end. Each is twice
// as long as the one before, and they begin anew after a rest.
type pauses struct {
	first, longest time.Duration
	enough         time.Duration // how long a rest has to be

	pause   time.Duration
	resting *time.Timer
}

func newPauses(first, longest, enough time.Duration) *pauses {
	return &pauses{first: first, longest: longest, enough: enough, resting: time.NewTimer(enough)}
}

// rest begins a rest, which ends with next.
func (p *pauses) rest() { p.resting.Reset(p.enough) }

// next returns the next pause.
func (p *pauses) next() time.Duration {
	select {
	case <-p.resting.C: // Stop would not tell that it has run out
		p.pause = 0
	default:
		p.resting.Stop()
	}
	p.pause = min(max(2*p.pause, p.first), p.longest)
	return p.pause
}
