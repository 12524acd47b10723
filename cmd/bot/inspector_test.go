package main

import (
	"net/http"
	"slices"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// inspection returns what the page shows in its inspector.
func (s *sim) inspection() slacksim.Inspection {
	s.t.Helper()
	var out slacksim.Inspection
	s.do(http.MethodGet, "/sim/inspection", nil, &out)
	return out
}

func happened(h slacksim.Inspection, what string) bool {
	return slices.ContainsFunc(h.Timeline, func(e slacksim.InspectionEvent) bool { return e.What == what })
}

// TestTheDemosInspectorTellsTheStoryOfARun tells the story of a run, with either Redis.
func TestTheDemosInspectorTellsTheStoryOfARun(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"in memory": nil,
		"at a URL":  {"--redis", "redis://" + miniredis.RunT(t).Addr()},
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := startDemo(t, args...)
			require.Empty(t, s.inspection().Timeline)

			root := s.ask(cleanUp, "")
			card := s.await(bob, root, "the card", says("2023-q1-sales.txt", "delete_file"))
			h := s.inspection()
			require.True(t, happened(h, "Alice asked, and a run began"), h.Timeline)
			require.True(t, happened(h, "Run ended with DeferredToolRequests: 2 calls"), h.Timeline)
			require.NotEmpty(t, h.Documents)
			batch := h.Documents[0]
			require.Contains(t, batch.Key, ":batch:", "what waits for people comes first")
			require.Equal(t, "hash", batch.Type)
			require.Contains(t, batch.Value, `"status": "pending"`)
			require.Positive(t, batch.Bytes)

			require.Empty(t, s.click(bob, card, "2023-q1", "Approve").VisibleError)
			card = s.await(bob, root, "one approved", func(m message) bool { return m.TS == card.TS && len(m.buttons("2023-q1")) < 3 })
			require.Empty(t, s.click(bob, card, "2023-q2", "Approve").VisibleError)
			s.await(alice, root, "the answer", says("reports/2023-q1-sales.txt: deleted", "reports/2023-q2-sales.txt: deleted"))
			h = s.inspection()
			var story []string
			for _, e := range h.Timeline {
				story = append(story, e.What)
			}
			for _, what := range []string{"Bob approved delete_file", "Every call has its answer", "A new run resumed with the answers", "delete_file ran"} {
				require.Contains(t, story, what)
			}
			require.Less(t, slices.Index(story, "Bob approved delete_file"), slices.Index(story, "Every call has its answer"))
			require.Equal(t, "Run completed", story[len(story)-1])
			at := slices.IndexFunc(h.Timeline, func(e slacksim.InspectionEvent) bool { return e.What == "Bob approved delete_file" })
			require.JSONEq(t, `{"path":"reports/2023-q1-sales.txt"}`, h.Timeline[at].Detail)
			for _, d := range h.Documents {
				require.NotContains(t, d.Value, "xoxb-", d.Key)
			}
		})
	}
}
