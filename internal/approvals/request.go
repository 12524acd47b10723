package approvals

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
)

// bind returns the request id under which a command is remembered: the
// caller's, bound to what the command says. A caller that uses an id twice for
// two things has made two requests, so that neither is swallowed. When it was
// said is not part of it: a repetition says it later.
func (r RequestID) bind(parts ...string) RequestID {
	if r == "" {
		return ""
	}
	all := make([]byte, 0, 512)
	for _, p := range append([]string{string(r)}, parts...) {
		all = append(binary.BigEndian.AppendUint64(all, uint64(len(p))), p...)
	}
	sum := sha256.Sum256(all)
	return RequestID(hex.EncodeToString(sum[:]))
}

func (d Decision) said() []string {
	return []string{string(d.Call), string(d.By.User), string(d.Verdict), d.Digest.String(), d.Reason}
}

func (c Decide) request(r RequestID) RequestID {
	return r.bind(append([]string{"decide"}, c.said()...)...)
}

func (c Retract) request(r RequestID) RequestID {
	return r.bind("retract", string(c.Call), string(c.By.User))
}

// request leaves a result that cannot be encoded to [Batch.Apply] to refuse.
func (c Fulfill) request(r RequestID) RequestID {
	result, _ := json.Marshal(DeferredToolResults{Calls: map[ToolCallID]CallResult{c.Call: c.Result}})
	return r.bind("fulfil", string(c.Call), string(result)) //nolint:misspell // as stored requests have it
}

func (c Amend) request(r RequestID) RequestID {
	return r.bind("amend", string(c.Call), string(c.By.User), c.From.String(), string(c.Args))
}

func (c Withdraw) request(r RequestID) RequestID {
	return r.bind("withdraw", string(c.By), c.Reason)
}

func (c Conclude) request(r RequestID) RequestID {
	parts := []string{"conclude"}
	for _, of := range c.Calls {
		e := of.Execution
		parts = append(parts, string(of.Call), string(e.State), e.By, e.Words, e.Excerpt, e.Took.String())
	}
	return r.bind(parts...)
}

func requestOfAll(r RequestID, cmds []Decide) RequestID {
	parts := []string{"decide all"}
	for _, c := range cmds {
		parts = append(parts, c.said()...)
	}
	return r.bind(parts...)
}
