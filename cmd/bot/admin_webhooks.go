package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/outbox"
	"github.com/countersign/countersign/internal/strictyaml"
)

func adminWebhooks(ctx context.Context, in *call) error {
	asJSON := in.flags.Bool("json", false, "Write JSON.")
	return administer(ctx, in, func(a admin, _ []string) error { return a.webhooks(ctx, *asJSON) })
}

func adminEnable(ctx context.Context, in *call) error {
	return act(ctx, in, func(a admin, args []string) (done, error) { return a.enable(ctx, args[0], args[1]) })
}

func adminRedeliver(ctx context.Context, in *call) error {
	return act(ctx, in, func(a admin, args []string) (done, error) { return a.redeliver(ctx, args[0]) })
}

// outbox is one that sends nothing: the bot does.
func (a admin) outbox() (*outbox.Outbox, error) {
	return outbox.New(outbox.Config{Store: a.store, Now: time.Now, Log: a.log})
}

// webhooks lists the endpoints that messages were made for, and the others of the
// configuration.
func (a admin) webhooks(ctx context.Context, asJSON bool) error {
	o, err := a.outbox()
	if err != nil {
		return err
	}
	list, err := o.List(ctx)
	if err != nil {
		return fmt.Errorf("list the webhooks: %w", err)
	}
	list = withConfigured(list, a.remote)
	if asJSON {
		return a.sayJSON(append([]outbox.Status{}, list...))
	}
	var out strings.Builder
	disabled := 0
	for _, s := range list {
		state := "enabled"
		if !s.DisabledAt.IsZero() {
			disabled++
			state = "disabled since " + s.DisabledAt.UTC().Format(time.RFC3339)
		}
		delivered := "never delivered"
		if !s.Delivered.IsZero() {
			delivered = "delivered " + s.Delivered.UTC().Format(time.RFC3339)
		}
		why := s.Reason
		if why == "" {
			why = s.LastError
		}
		out.WriteString(tableLine(s.Agent, s.Endpoint, state, delivered, fmt.Sprintf("%d waiting", s.Waiting), why))
		for _, id := range s.GivenUp {
			out.WriteString(tableLine(s.Agent, s.Endpoint, "given up", id))
		}
	}
	fmt.Fprintf(&out, "%s, %d disabled\n", counted(len(list), "webhook", "webhooks"), disabled)
	if !a.configured {
		out.WriteString("With --config FILE, the webhooks of the configuration that had no message yet are listed too.\n")
	}
	return a.say(out.String())
}

// withConfigured adds the endpoints of these agents that are not on the list because
// there was nothing to send to them yet.
func withConfigured(list []outbox.Status, agents []config.RemoteAgent) []outbox.Status {
	for _, agent := range agents {
		for _, w := range agent.Webhooks {
			if !slices.ContainsFunc(list, func(s outbox.Status) bool { return s.Agent == agent.Name && s.Endpoint == w.Name }) {
				list = append(list, outbox.Status{Agent: agent.Name, Endpoint: w.Name})
			}
		}
	}
	slices.SortFunc(list, func(a, b outbox.Status) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Endpoint, b.Endpoint))
	})
	return list
}

// enable has messages sent to a disabled endpoint again.
func (a admin) enable(ctx context.Context, agent, name string) (done, error) {
	o, err := a.outbox()
	if err != nil {
		return done{}, err
	}
	if a.configured && !slices.ContainsFunc(withConfigured(nil, a.remote), func(s outbox.Status) bool { return s.Agent == agent && s.Endpoint == name }) {
		if err := a.unmessaged(ctx, o, agent, name); err != nil {
			return done{}, fmt.Errorf("enable: %w", err)
		}
		return done{}, fmt.Errorf("enable: the webhook %q of the agent %q is not in the configuration, so nothing can be sent to it: add it again and restart the replicas first", name, agent)
	}
	waiting, err := o.Enable(ctx, agent, name)
	if errors.Is(err, approvals.ErrNotFound) {
		err = a.unmessaged(ctx, o, agent, name)
	}
	if err != nil {
		return done{}, fmt.Errorf("enable: %w", err)
	}
	return done{
		fmt.Sprintf("enabled; %s due now", counted(waiting, "message is", "messages are")),
		map[string]any{"agent": agent, "webhook": name, "state": "enabled", "due": waiting},
	}, nil
}

// unmessaged is why a webhook without messages cannot be enabled, and nil if it is in the
// configuration: it is enabled until a message to it fails.
func (a admin) unmessaged(ctx context.Context, o *outbox.Outbox, agent, name string) error {
	list, err := o.List(ctx)
	if err != nil {
		return fmt.Errorf("list the webhooks: %w", err)
	}
	var known []string
	for _, s := range withConfigured(list, a.remote) {
		known = append(known, s.Agent+" "+s.Endpoint)
	}
	if slices.Contains(known, agent+" "+name) {
		return nil
	}
	hint := strictyaml.HintOr(agent+" "+name, known)
	if a.configured {
		return fmt.Errorf("there is no webhook %q of the agent %q%s", name, agent, hint)
	}
	return fmt.Errorf("there was no message for a webhook %q of the agent %q%s; with --config FILE, the webhooks of the configuration are known too", name, agent, hint)
}

// redeliver sends the messages about a request again.
func (a admin) redeliver(ctx context.Context, request string) (done, error) {
	o, err := a.outbox()
	if err != nil {
		return done{}, err
	}
	if err := a.known(ctx, approvals.RunID(request)); err != nil {
		return done{}, err
	}
	due, held, err := o.Redeliver(ctx, request)
	if errors.Is(err, approvals.ErrNotFound) {
		return done{}, fmt.Errorf("redeliver: there are no webhook messages about %s; a request has them if it names a webhook with notify", request)
	}
	if err != nil {
		return done{}, fmt.Errorf("redeliver: %w", err)
	}
	said := counted(due, "message is", "messages are") + " due now"
	if held > 0 {
		said += fmt.Sprintf("; %s for bot admin enable, because the webhook is disabled", counted(held, "waits", "wait"))
	}
	return done{said, map[string]any{"request": request, "due": due, "held": held}}, nil
}
