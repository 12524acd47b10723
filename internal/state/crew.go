package state

import "time"

// crewRests is how long a goroutine waits for something else to do.
const crewRests = time.Second

// A crew runs functions in goroutines that it uses again. The stack of one has grown to
// what a handler takes: in a new one, growing it is a tenth of the work of drawing a card.
type crew struct{ next chan func() }

func newCrew() crew { return crew{make(chan func())} }

// run runs f in a goroutine of its own. f may call [runtime.Goexit].
func (c crew) run(f func()) {
	select {
	case c.next <- f:
	default: // none of them rests
		go c.work(f)
	}
}

func (c crew) work(f func()) {
	rest := time.NewTimer(crewRests)
	defer rest.Stop()
	for {
		f()
		rest.Reset(crewRests)
		select {
		case f = <-c.next:
		case <-rest.C:
			return
		}
	}
}
