package slacksim

import (
	"fmt"
	"net/url"
)

// What the routes of the control API take and answer, beyond the types of
// the methods behind them.
type (
	// Posted is a new message.
	Posted struct {
		TS string `json:"ts"`
	}
	// Who is a person, by id or name.
	Who struct {
		User string `json:"user"`
	}
	// Done is the answer of routes that only do something.
	Done struct{}
	// Problem is the answer of every route that did not do what it was
	// asked for.
	Problem struct {
		Error string `json:"error"`
	}
	// Closing is a person leaving a modal; Clear is the X in its corner.
	Closing struct {
		User   string `json:"user"`
		ViewID string `json:"view_id"`
		Clear  bool   `json:"clear,omitempty"`
	}
	// Closed says that the modal is gone.
	Closed struct {
		Closed bool `json:"closed"`
	}
	// Membership is a person and a channel.
	Membership struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
	}
	// Archiving is a person archiving a channel, or opening it again.
	Archiving struct {
		User     string `json:"user"`
		Channel  string `json:"channel"`
		Archived bool   `json:"archived"`
	}
	// Account is whether a person's account is deactivated.
	Account struct {
		User    string `json:"user"`
		Deleted bool   `json:"deleted"`
	}
	// Members are all members of a user group.
	Members struct {
		ID    string   `json:"id"`
		Users []string `json:"users"`
	}
	// Stopping is a person stopping a message that is being streamed.
	Stopping struct {
		User    string `json:"user"`
		Channel string `json:"channel"`
		TS      string `json:"ts"`
	}
	// Installed is whether the app is installed in a workspace; an empty
	// team means the first one, or the organization.
	Installed struct {
		Team      string `json:"team_id,omitempty"`
		Installed bool   `json:"installed"`
	}
	// URLs is where the app listens; one that is empty is a feature it does
	// not have. Options may be left out for the interactivity URL.
	URLs struct {
		Events        string `json:"events"`
		Interactivity string `json:"interactivity"`
		Commands      string `json:"commands"`
		Options       string `json:"options,omitempty"`
	}
	// SocketMode is whether the app is set to Socket Mode.
	SocketMode struct {
		Enabled bool `json:"enabled"`
	}
	// Disconnecting is what happens to one connection of Socket Mode, or to
	// all of them.
	Disconnecting struct {
		Socket string `json:"socket,omitempty"`
		Reason string `json:"reason"`
	}
	// Disconnected is to how many it happened.
	Disconnected struct {
		Disconnected int `json:"disconnected"`
	}
	// Connections are those that are open.
	Connections struct {
		Enabled bool     `json:"enabled"`
		Sockets []Socket `json:"sockets"`
		Held    int      `json:"held"`
	}
	// SSLChecked is what the app answered to an ssl_check.
	SSLChecked struct {
		Status int `json:"status"`
	}
	// Ticking moves the workspace's clock.
	Ticking struct {
		AdvanceMS int64 `json:"advance_ms"`
	}
	// Clock is the workspace's time in unix seconds.
	Clock struct {
		Now int64 `json:"now"`
	}
	// Reading says whose view of which channel or thread is wanted.
	Reading struct {
		User     string `json:"user"`
		Channel  string `json:"channel"`
		ThreadTS string `json:"thread_ts,omitempty"`
	}
	// Channelful is what a person sees in a channel or thread.
	Channelful struct {
		Messages  []Message  `json:"messages"`
		Assistant *Assistant `json:"assistant,omitempty"`
	}
	// Screen is what is open on a person's screen.
	Screen struct {
		Views []View `json:"views"`
		Home  *View  `json:"home,omitempty"`
	}
	// Requests are those between the workspace and the app.
	Requests struct {
		Log []LogEntry `json:"log"`
	}
	// Change is an event of the stream: the workspace has this version now.
	Change struct {
		Version uint64 `json:"version"`
	}
)

// wrong returns which of the URLs is none.
func (u URLs) wrong() error {
	for _, one := range []struct{ name, value string }{
		{"events", u.Events}, {"interactivity", u.Interactivity}, {"commands", u.Commands}, {"options", u.Options},
	} {
		if one.value != "" && !IsURL(one.value) {
			return fmt.Errorf("%w: %s: %q is not an http or https URL", ErrBadInput, one.name, one.value)
		}
	}
	return nil
}

// IsURL reports whether a text is a URL at which an app can listen: absolute, http or https.
func IsURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
