package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxQuestion is how many bytes the message of [Sender.Ask] may have, and MaxReply
// how many the answer to it.
const (
	MaxQuestion = 1 << 20
	MaxReply    = 16 << 10
)

var errQuestion = fmt.Errorf("the question has more than %d bytes", MaxQuestion)

// Ask sends the message once, as [Sender.Send] does, and returns the body of the
// answer, whose status must be 200. The answer counts only if the outcome is
// [Delivered]. It takes at most the time that is given, and no longer than the time
// limit of the sender.
func (s *Sender) Ask(ctx context.Context, e Endpoint, m Message, within time.Duration) ([]byte, Outcome) {
	question, err := m.body(MaxQuestion, errQuestion)
	if err != nil {
		return nil, Outcome{Kind: Invalid, Reason: sentence(err)}
	}
	within = min(within, s.cfg.Timeout)
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	resp, failed := s.post(ctx, e, m.ID, m.Trace, question, within)
	if resp == nil {
		return nil, failed
	}
	defer resp.Body.Close() //nolint:errcheck // it was read, or does not count
	o := s.judge(resp)
	if o.Kind == Delivered && resp.StatusCode != http.StatusOK {
		o = Outcome{Kind: Retry, Status: resp.StatusCode, Reason: fmt.Sprintf("The receiver answered %d instead of 200.", resp.StatusCode)}
	}
	if o.Kind != Delivered {
		return nil, o
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, MaxReply+1))
	switch {
	case err != nil:
		return nil, Outcome{Kind: Retry, Status: resp.StatusCode, Reason: s.explain(err, within)}
	case len(answer) > MaxReply:
		return nil, Outcome{Kind: Retry, Status: resp.StatusCode, Reason: fmt.Sprintf("The answer has more than %d bytes.", MaxReply)}
	}
	return answer, o
}
