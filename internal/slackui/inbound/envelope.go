package inbound

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"time"

	"github.com/countersign/countersign/internal/slackui/blockkit"
)

// envelope handles an envelope of Socket Mode like the HTTP request with the same
// content: the payload of an event is the body of the request, and that of an
// interaction is in it; a command is sent as a form.
func (s *HTTP) envelope(ctx context.Context, f frame) (Reply, error) {
	defer s.cfg.attended()()
	switch f.Type {
	case "events_api":
		return s.events(ctx, f.Payload)
	case "interactive":
		return s.interaction(ctx, f.Payload)
	case "slash_commands":
		form, err := commandForm(f.Payload)
		if err != nil {
			return Reply{}, err
		}
		return s.commands(ctx, []byte(form.Encode()))
	}
	s.cfg.Log.WarnContext(ctx, "envelope of an unknown type", slog.String("type", blockkit.Brief(f.Type, 64)))
	return Reply{}, nil
}

// pathOf is where an envelope of a type would arrive over HTTP.
var pathOf = map[string]string{"events_api": eventsPath, "interactive": interactivityPath, "slash_commands": commandsPath}

// answered reports an answer to an envelope, for a kind that has a path over HTTP.
func (s *Socket) answered(f frame, code int, began time.Time) {
	if path, ok := pathOf[f.Type]; ok {
		s.told(path, code, s.now().Sub(began))
	}
}

// commandForm returns a slash command as the form in which it comes over HTTP.
func commandForm(payload json.RawMessage) (url.Values, error) {
	var fields map[string]any
	if err := json.Unmarshal(payload, &fields); err != nil {
		return nil, fmt.Errorf("%w: slash command: %w", errBody, err)
	}
	form := url.Values{}
	for name, v := range fields {
		switch v := v.(type) {
		case string:
			form.Set(name, v)
		case bool:
			form.Set(name, strconv.FormatBool(v))
		}
	}
	return form, nil
}
