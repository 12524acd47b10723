package webhook

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// MaxQuestion and MaxReply are the size limits of the message of [Sender.Ask] and of the
// answer, in bytes.
const (
	MaxQuestion = 1 << 20
	MaxReply    = 16 << 10
)

var errQuestion = fmt.Errorf("the question has more than %d bytes", MaxQuestion)

// Ask sends the message once, as [Sender.Send] does, and returns the body of the answer.
// The outcome is [Delivered] only for a whole answer with the status 200; otherwise there
// is no body. Ask takes at most the time within, and at most the time limit of the
// sender.
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
