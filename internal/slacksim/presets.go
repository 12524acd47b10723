package slacksim

import "slices"

// Globex is the id of the second workspace of [Config.WithGlobex].
const Globex = "T0GLOBEX"

// WithGlobex adds a second workspace, of another company: Erin and Fred,
// #lab, and #deal, which Erin shares with Alice. The app is installed there
// with a token of its own, see [Server.TokenOf].
func (c Config) WithGlobex() Config {
	c = c.withDefaults(everyScope())
	c.Workspaces = append(slices.Clip(c.Workspaces), Workspace{
		ID: Globex, Name: "Globex", Domain: "globex", Token: "xoxb-" + randomHex(16),
	})
	c.People = append(slices.Clip(c.People),
		Person{ID: "U0ERIN", Name: "erin", RealName: "Erin Ekdahl", Email: "erin@globex.example", Team: Globex},
		Person{ID: "U0FRED", Name: "fred", RealName: "Fred Faber", Email: "fred@globex.example", Team: Globex})
	c.Channels = append(slices.Clip(c.Channels),
		Channel{ID: "C0DEAL", Name: "deal", Members: []string{"U0ALICE", "U0ERIN", BotUser}, Shared: []string{Globex}},
		Channel{ID: "C0LAB", Name: "lab", Members: []string{"U0ERIN", "U0FRED"}, Team: Globex})
	c.Groups = append(slices.Clip(c.Groups),
		Group{ID: "S0LAB", Handle: "lab", Name: "Laboratory", Users: []string{"U0ERIN"}, Team: Globex})
	return c
}

// WithOrg adds the same workspace, as one of the organization that the app
// is installed in, with one token for both.
func (c Config) WithOrg() Config {
	c = c.WithGlobex()
	c.Enterprise = &Enterprise{ID: "E0ACME", Name: "Acme Group", Installed: true}
	for i := range c.Workspaces {
		c.Workspaces[i].Org, c.Workspaces[i].Token = true, ""
	}
	for i, ch := range c.Channels {
		if ch.Team == Globex {
			c.Channels[i].Members = append(slices.Clip(ch.Members), BotUser)
		}
	}
	return c
}
