package slacksim_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slacksim"
)

// An app posts a button; Bob presses it and the app answers.
func Example() {
	sim := slacksim.New(slacksim.Config{})
	defer sim.Close()
	srv := httptest.NewServer(sim)
	defer srv.Close()
	api := slack.New(sim.BotToken(), slack.OptionAPIURL(srv.URL+"/api/"))

	app := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		click, _ := slack.InteractionCallbackParse(r) // a real app checks the signature first
		_, _, _, _ = api.UpdateMessage(click.Channel.ID, click.Message.Timestamp,
			slack.MsgOptionText("Approved by "+click.User.Name, false), slack.MsgOptionBlocks([]slack.Block{}...))
	}))
	defer app.Close()
	sim.SetURLs("", app.URL, "")

	button := slack.NewButtonBlockElement("approve", "batch-1", slack.NewTextBlockObject("plain_text", "Approve", false, false))
	_, ts, err := api.PostMessage("C0OPS", slack.MsgOptionText("Restart the web pods?", false),
		slack.MsgOptionBlocks(slack.NewActionBlock("decide", button)))
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := sim.Click(slacksim.Click{User: "bob", Channel: "#ops", TS: ts, ActionID: "approve"})
	fmt.Println(out.Status, err)
	seen, _ := sim.Messages("alice", "#ops", "")
	fmt.Println(seen[0].Text)
	// Output:
	// 200 <nil>
	// Approved by bob
}
