package demo

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/url"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/demo/chat"
)

// chatChannel is where the requests of chats are shown.
const chatChannel = "C0OPS"

// A web is the chats of the demo: their settings, and the page in front of them.
type web struct {
	on     net.Listener // where the bot serves them
	listen string       // its address
	people []chat.Person
	tokens map[string]string
}

// prepareChat listens for the chats, and gives everybody a token that only the page
// knows.
func (d *demo) prepareChat(ctx context.Context) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the chats: %w", err)
	}
	d.web = web{on: l, listen: l.Addr().String(), tokens: map[string]string{}}
	d.undo = append(d.undo, func() error { _ = l.Close(); return nil }) // the bot has closed it, if it was started
	for _, p := range people() {
		if p.Bot || p.Guest || p.Stranger || p.Deleted {
			continue
		}
		d.web.people = append(d.web.people, chat.Person{ID: p.ID, Name: p.Name})
		d.web.tokens[p.ID] = rand.Text()
	}
	return nil
}

// settings are those of the chats.
func (w web) settings(c *config.Config) {
	c.HTTP.Listen = w.listen
	c.Web = config.Web{Agent: c.Agents[0].Name, Channel: chatChannel}
	for _, p := range w.people {
		sum := sha256.Sum256([]byte(w.tokens[p.ID]))
		c.Web.People = append(c.Web.People, config.WebPerson{User: approvals.UserID(p.ID), Tokens: []string{fmt.Sprintf("sha256:%x", sum)}})
	}
}

// beside serves the page of the chats beside the Slack of the demo.
func (d *demo) beside(slack http.Handler) http.Handler {
	var prompts []string
	for _, s := range Stories() {
		prompts = append(prompts, s.Prompt)
	}
	routes := http.NewServeMux()
	routes.Handle("/", slack)
	routes.Handle(chat.Path, chat.Handler(chat.Config{
		Server: &url.URL{Scheme: "http", Host: d.web.listen}, People: d.web.people, Tokens: d.web.tokens, Prompts: prompts,
		AnyHost: d.Expose && !isLoopback(d.page.Addr()),
	}))
	return routes
}
