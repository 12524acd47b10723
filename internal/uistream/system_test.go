package uistream_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/uistream"
)

// An instructed model notes the instructions of each request.
type instructed struct {
	script

	mu  sync.Mutex
	got []string
}

func (m *instructed) Request(ctx context.Context, q agentrun.ModelRequest) (agentrun.Response, error) {
	m.mu.Lock()
	m.got = append(m.got, q.Instructions)
	m.mu.Unlock()
	return m.script.Request(ctx, q)
}

func TestSystemMessagesAreInstructionsOnlyWhereThatIsSet(t *testing.T) {
	system := func(text string) object {
		return object{"id": "s", "role": "system", "parts": []any{object{"type": "text", "text": text}}}
	}
	for name, row := range map[string]struct {
		client bool
		own    string // of the agent
		first  string
	}{
		"dropped":              {own: "Be brief.", first: "Be brief."},
		"after the agent's":    {client: true, own: "Be brief.", first: "Be brief.\n\nRhyme.\n\nIn French."},
		"instead of none":      {client: true, first: "Rhyme.\n\nIn French."},
		"dropped without ones": {},
	} {
		t.Run(name, func(t *testing.T) {
			model := &instructed{}
			w := newWorld(t, func(c *uistream.Config, a *agentrun.Agent) {
				c.System, a.Instructions, a.Model = row.client, row.own, model
			})
			c := w.client(alice)
			c.head.Set("Countersign-Follow", "true")
			post := func(messages ...any) reply {
				return c.do(http.MethodPost, uistream.Path, object{"id": c.chat, "messages": messages})
			}
			s := read(t, post(system("Rhyme."), system(" "), userMessage("u1", "del:a"), system("In French."), userMessage("u2", "del:a | say bye")))
			s.until("tool-approval-request")
			require.NoError(t, w.decide(t.Context(), bob, "a", approvals.Approve, ""))
			s.all()
			require.Equal(t, []string{row.first, row.first}, model.got, "also in the runs that resume it")

			read(t, post(userMessage("u3", "say bye"))).all()
			require.Equal(t, row.own, model.got[len(model.got)-1], "they are those of one message")

			code := http.StatusOK
			if row.client {
				code = http.StatusUnprocessableEntity
			}
			require.Equal(t, code, post(system(strings.Repeat("é", 20_001)), userMessage("u4", "say bye")).code)
		})
	}
}

func TestTheInstructionsOfAMessageEndThoseOfTheOneItSupersedes(t *testing.T) {
	model := &instructed{}
	c := newWorld(t, func(c *uistream.Config, a *agentrun.Agent) { c.System, a.Model = true, model }).client(alice)
	for _, text := range []string{"One.", "Two."} {
		system := object{"id": "s", "role": "system", "parts": []any{object{"type": "text", "text": text}}}
		read(t, c.do(http.MethodPost, uistream.Path, object{"id": c.chat, "messages": []any{system, userMessage(text, "del:a")}})).all()
	}
	require.Equal(t, []string{"One.", "Two."}, model.got)
}
