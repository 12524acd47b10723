package inbound

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

// heard is a handler that notes what reaches it.
type heard struct {
	served, foreign int
}

func (h *heard) Interaction(context.Context, Interaction) (Reply, error) {
	h.served++
	return Reply{}, nil
}

func (h *heard) Command(context.Context, Command) (Reply, error) {
	h.served++
	return Reply{}, nil
}

func (h *heard) Event(context.Context, Event) error {
	h.served++
	return nil
}

func (h *heard) Foreign(context.Context, Interaction, error) (Reply, error) {
	h.foreign++
	return Reply{}, nil
}

func (h *heard) ForeignCommand(context.Context, Command) (Reply, error) {
	h.foreign++
	return Reply{}, nil
}

func (*heard) Wait(context.Context) error { return nil }

// Whatever Slack delivers is served only if it is of the workspace of the
// installation. People are told so; an event is nobody's to be answered.
func TestEveryKindOfDeliveryIsServedOnlyFromItsWorkspace(t *testing.T) {
	interaction := func(kind, rest string) func(team string) frame {
		return func(team string) frame {
			return frame{Type: "interactive", Payload: fmt.Appendf(nil, `{"type":%q,"team":{"id":%q},"user":{"id":"U1"}%s}`, kind, team, rest)}
		}
	}
	event := func(inner string) func(team string) frame {
		return func(team string) frame {
			return frame{Type: "events_api", Payload: fmt.Appendf(nil, `{"type":"event_callback","team_id":%q,"event_id":"E","event":%s}`, team, inner)}
		}
	}
	for name, c := range map[string]struct {
		of      func(team string) frame
		foreign int
	}{
		"a button":           {interaction("block_actions", `,"actions":[{"action_id":"a"}]`), 1},
		"a form":             {interaction("view_submission", ``), 1},
		"a closed form":      {interaction("view_closed", ``), 1},
		"a message shortcut": {interaction("message_action", ``), 1},
		"a command": {func(team string) frame {
			return frame{Type: "slash_commands", Payload: fmt.Appendf(nil, `{"command":"/countersign","user_id":"U1","team_id":%q}`, team)}
		}, 1},
		"a mention":        {event(`{"type":"app_mention","user":"U1","channel":"C1","ts":"1700000000.000100","text":"go"}`), 0},
		"a message":        {event(`{"type":"message","user":"U1","channel":"C1","ts":"1700000000.000100","text":"go"}`), 0},
		"a Home":           {event(`{"type":"app_home_opened","user":"U1","tab":"home"}`), 0},
		"a group":          {event(`{"type":"subteam_updated","subteam":{"id":"S1"}}`), 0},
		"members":          {event(`{"type":"subteam_members_changed","subteam_id":"S1"}`), 0},
		"a joined channel": {event(`{"type":"member_joined_channel","channel":"C1","user":"U1"}`), 0},
		"a left channel":   {event(`{"type":"member_left_channel","channel":"C1","user":"U1"}`), 0},
		"an account":       {event(`{"type":"user_change","user":{"id":"U1"}}`), 0},
	} {
		t.Run(name, func(t *testing.T) {
			for team, want := range map[string]heard{"T0OURS": {served: 1}, "T0OTHER": {foreign: c.foreign}, "": {foreign: c.foreign}} {
				h := &heard{}
				s := &HTTP{cfg: Config{Log: slog.New(slog.DiscardHandler)}, workspace: Workspace{Team: "T0OURS", Enterprise: "E0OURS"}, handler: h}
				_, err := s.envelope(t.Context(), c.of(team))
				require.NoError(t, err)
				require.Equal(t, want, *h, "from %q", team)
			}
		})
	}
}
