package slacksim_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/slack-go/slack/slackevents"
	"github.com/slack-go/slack/socketmode"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/slacksim"
)

// runs an app on slack-go's client for Socket Mode until the test ends.
func (w *workspace) runs(t *testing.T, handle func(*socketmode.Client, socketmode.Event)) {
	t.Helper()
	api := slack.New(w.BotToken(), slack.OptionAPIURL(w.url+"/api/"), slack.OptionAppLevelToken(w.AppToken()))
	client := socketmode.New(api)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = client.RunContext(ctx) }) // it ends with the context
	running.Go(func() {
		for {
			select {
			case e := <-client.Events:
				handle(client, e)
			case <-ctx.Done():
				return
			}
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	w.await(t, func() bool { return len(w.Sockets()) == 1 })
}

// The whole story with slack-go's client for Socket Mode: a mention, a
// click, a modal that is refused and then accepted, a slash command, and a
// connection that is refreshed in between.
func TestSlackGoTellsItsStoryOverSockets(t *testing.T) {
	w := socketWorkspace(t, slacksim.Config{SocketPing: time.Second})
	w.runs(t, func(c *socketmode.Client, e socketmode.Event) {
		switch data := e.Data.(type) {
		case slackevents.EventsAPIEvent:
			_ = c.Ack(*e.Request)
			if m, ok := data.InnerEvent.Data.(*slackevents.AppMentionEvent); ok {
				_, _, _ = w.api.PostMessage(m.Channel, slack.MsgOptionText("May I?", false), slack.MsgOptionBlocks(
					slack.NewActionBlock("decide", slack.NewButtonBlockElement("deny", "v", slack.NewTextBlockObject("plain_text", "Deny", false, false)))))
			}
		case slack.InteractionCallback:
			if data.Type == slack.InteractionTypeViewSubmission {
				if len(data.View.State.Values["reason"]["text"].Value) < 5 {
					_ = c.Ack(*e.Request, slack.NewErrorsViewSubmissionResponse(map[string]string{"reason": "Say more."}))
					return
				}
				_ = c.Ack(*e.Request)
				return
			}
			_, _ = w.api.OpenView(data.TriggerID, slack.ModalViewRequest{
				Type: slack.VTModal, Title: slack.NewTextBlockObject("plain_text", "Deny", false, false),
				Submit: slack.NewTextBlockObject("plain_text", "Deny", false, false),
				Blocks: slack.Blocks{BlockSet: []slack.Block{slack.NewInputBlock("reason",
					slack.NewTextBlockObject("plain_text", "Reason", false, false), nil, slack.NewPlainTextInputBlockElement(nil, "text"))}},
			})
			_ = c.Ack(*e.Request)
		case slack.SlashCommand:
			_ = c.Ack(*e.Request, map[string]any{"text": "Looking at " + data.Text + "."})
		}
	})

	w.says(t)
	card := func() slacksim.Message {
		all, err := w.Messages("bob", "C0OPS", "")
		require.NoError(t, err)
		return all[len(all)-1]
	}
	w.await(t, func() bool { return len(card().Actions()) == 1 })
	n, err := w.Disconnect("", slacksim.Warning)
	require.NoError(t, err)
	require.Equal(t, 1, n)
	w.await(t, func() bool { s := w.Sockets(); return len(s) == 1 && !s[0].Warned })

	out, err := w.Click(click(card().TS, "deny"))
	require.NoError(t, err)
	require.Equal(t, slacksim.ClickOutcome{Status: 200}, out)
	view := w.Views("bob")[0].ID
	submitted, err := w.submits(view, "no")
	require.NoError(t, err)
	require.Equal(t, map[string]string{"reason": "Say more."}, submitted.Errors)
	submitted, err = w.submits(view, "it is in use")
	require.NoError(t, err)
	require.True(t, submitted.Closed)
	answered, err := w.types("payments")
	require.NoError(t, err)
	require.Equal(t, "Looking at payments.", answered.Message.Text)
}
