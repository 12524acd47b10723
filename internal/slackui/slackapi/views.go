package slackapi

import (
	"context"

	"github.com/countersign/countersign/internal/slackui/blockkit"
	"github.com/slack-go/slack"
)

func viewOf(method string, r *slack.ViewResponse, err error) (id, hash string, _ error) {
	if err == nil && (r == nil || r.ID == "") {
		err = ErrNoAnswer
	}
	if err != nil {
		return "", "", classify(method, err)
	}
	return r.ID, r.Hash, nil
}

// OpenedView opens a view, and returns its id and hash.
func (a *Client) OpenedView(ctx context.Context, trigger string, v slack.ModalViewRequest) (id, hash string, err error) {
	r, err := a.client.OpenViewContext(ctx, trigger, v)
	return viewOf("views.open", r, err)
}

// PushedView opens a view over the modal that is open, and returns its id and hash.
func (a *Client) PushedView(ctx context.Context, trigger string, v slack.ModalViewRequest) (id, hash string, err error) {
	r, err := a.client.PushViewContext(ctx, trigger, v)
	return viewOf("views.push", r, err)
}

// Replace replaces the ephemeral message whose response URL this is.
func (*Client) Replace(ctx context.Context, response string, m blockkit.Message) error {
	err := slack.PostWebhookCustomHTTPContext(ctx, response, HTTPClient(CallTimeout, nil), &slack.WebhookMessage{
		ResponseType: slack.ResponseTypeEphemeral, ReplaceOriginal: true, Text: m.Text.String(), Blocks: &slack.Blocks{BlockSet: m.Blocks},
	})
	return classify("response_url", err)
}
