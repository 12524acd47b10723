package slackapi

import (
	"context"

	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/slack-go/slack"
)

func viewOf(method string, r *slack.ViewResponse, err error) (id string, _ error) {
	if err == nil && (r == nil || r.ID == "") {
		err = ErrNoAnswer
	}
	if err != nil {
		return "", classify(method, err)
	}
	return r.ID, nil
}

// ShowView opens a view, over the modal with the id over if there is one, and returns its
// id. A trigger works once, for 3 s: if it has opened a view before, as when Slack delivers
// a press again, that view stays, and the id is empty. Slack shows three modals over each
// other; a fourth replaces what the third shows.
func (a *Client) ShowView(ctx context.Context, trigger, over string, v slack.ModalViewRequest) (id string, err error) {
	id, err = a.showView(ctx, trigger, over, v)
	if HasCode(err, "exchanged_trigger_id") {
		return "", nil
	}
	return id, err
}

func (a *Client) showView(ctx context.Context, trigger, over string, v slack.ModalViewRequest) (id string, err error) {
	if over == "" {
		r, err := a.client.OpenViewContext(ctx, trigger, v)
		return viewOf("views.open", r, err)
	}
	r, err := a.client.PushViewContext(ctx, trigger, v)
	if id, err = viewOf("views.push", r, err); !HasCode(err, "push_limit_reached") {
		return id, err
	}
	r, err = a.client.UpdateViewContext(ctx, v, "", "", over)
	return viewOf("views.update", r, err)
}

// Replace replaces the ephemeral message whose response URL this is.
func (*Client) Replace(ctx context.Context, response string, m blockkit.Message) error {
	return respond(ctx, response, &slack.WebhookMessage{ReplaceOriginal: true, Text: m.Text.String(), Blocks: &slack.Blocks{BlockSet: m.Blocks}})
}

// Respond sends an ephemeral message to the person whose response URL this is. It needs no
// token, and is shown in the channel, not in a thread.
func (*Client) Respond(ctx context.Context, response string, m blockkit.Message) error {
	return respond(ctx, response, &slack.WebhookMessage{Text: m.Text.String()})
}

func respond(ctx context.Context, response string, m *slack.WebhookMessage) error {
	m.ResponseType = slack.ResponseTypeEphemeral
	return classify("response_url", slack.PostWebhookCustomHTTPContext(ctx, response, HTTPClient(CallTimeout, nil), m))
}
