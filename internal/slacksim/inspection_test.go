package slacksim_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// exampleInspection is what the reference shows.
func exampleInspection(context.Context) (slacksim.Inspection, error) {
	return slacksim.Inspection{
		Timeline: []slacksim.InspectionEvent{{At: time.Unix(1767000000, 0), Run: "run_1", What: "Bob approved restart", Detail: `{"service":"web"}`, Tone: "good"}},
		Documents: []slacksim.InspectionDocument{
			{Key: "app:batch:1", Type: "hash", Bytes: 9, Value: "{\n  \"v\": 2\n}"},
		},
	}, nil
}

func (w *workspace) inspection(t *testing.T) (int, map[string]any) {
	t.Helper()
	req, err := http.NewRequestWithContext(soon(t), http.MethodGet, w.url+"/sim/inspection", nil)
	require.NoError(t, err)
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	var out map[string]any
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&out))
	return resp.StatusCode, out
}

func TestInspectionIsNotFoundUnlessTheProgramProvidesIt(t *testing.T) {
	status, out := newWorkspace(t, slacksim.Config{}).inspection(t)
	require.Equal(t, http.StatusNotFound, status)
	require.Contains(t, out["error"], "inspector of the app")
}

func TestInspectionShowsNoSecrets(t *testing.T) {
	answers := make(chan slacksim.Inspection, 2)
	w := newWorkspace(t, slacksim.Config{BotToken: "xoxb-hush", Inspect: func(ctx context.Context) (slacksim.Inspection, error) {
		select {
		case h := <-answers:
			return h, ctx.Err()
		default:
			return slacksim.Inspection{}, errors.New("no store for xoxb-hush")
		}
	}})
	answers <- slacksim.Inspection{
		Timeline:  []slacksim.InspectionEvent{{What: "asked", Detail: "token=xoxb-hush"}},
		Documents: []slacksim.InspectionDocument{{Key: "k", Type: "string", Bytes: 9, Value: "xoxb-hush"}},
		Omitted:   3,
	}
	status, out := w.inspection(t)
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "token=[redacted]", dig(t, out, "timeline", 0, "detail"))
	require.Equal(t, "[redacted]", dig(t, out, "documents", 0, "value"))
	require.InEpsilon(t, 3, out["omitted"], 0)

	answers <- slacksim.Inspection{}
	_, out = w.inspection(t)
	require.Equal(t, map[string]any{"timeline": []any{}, "documents": []any{}}, out, "lists, not null")

	status, out = w.inspection(t)
	require.Equal(t, http.StatusInternalServerError, status)
	require.Equal(t, "look inside the app: no store for [redacted]", out["error"])
}
