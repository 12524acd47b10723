package slackui

// place is where words for one person go.
type place struct{ channel, thread, user string }

func whereOf(p Interaction) place { return place{channel: p.Channel, thread: p.Thread, user: p.User} }
