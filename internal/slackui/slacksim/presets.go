package slacksim

import "slices"

// GlobexToken is the token of the app's installation in the second workspace
// of [Config.WithGlobex].
const GlobexToken = "xoxb-slacksim-globex" //nolint:gosec // simulated, and public

const globex = "T0GLOBEX"

// WithGlobex adds a second workspace, of another company: Erin and Fred,
// #lab, and #deal, which Erin shares with Alice.
func (c Config) WithGlobex() Config {
	c = c.withDefaults()
	c.Workspaces = append(slices.Clip(c.Workspaces), Workspace{
		ID: globex, Name: "Globex", Domain: "globex", Token: GlobexToken,
	})
	c.People = append(slices.Clip(c.People),
		Person{ID: "U0ERIN", Name: "erin", RealName: "Erin Ekdahl", Email: "erin@globex.example", Team: globex},
		Person{ID: "U0FRED", Name: "fred", RealName: "Fred Faber", Email: "fred@globex.example", Team: globex})
	c.Channels = append(slices.Clip(c.Channels),
		Channel{ID: "C0DEAL", Name: "deal", Members: []string{"U0ALICE", "U0ERIN", BotUser}, Shared: []string{globex}},
		Channel{ID: "C0LAB", Name: "lab", Members: []string{"U0ERIN", "U0FRED"}, Team: globex})
	c.Groups = append(slices.Clip(c.Groups),
		Group{ID: "S0LAB", Handle: "lab", Name: "Laboratory", Users: []string{"U0ERIN"}, Team: globex})
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
		if ch.Team == globex {
			c.Channels[i].Members = append(slices.Clip(ch.Members), BotUser)
		}
	}
	return c
}
