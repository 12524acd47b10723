package slackui

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A form comes from the workspace of whoever fills it in. It is ours only if the
// app that opened it is installed where ours is.
func TestAFormIsOfTheInstallationThatOpenedIt(t *testing.T) {
	w := Workspace{Team: "T1", Enterprise: "E1"}
	from := func(team, enterprise, installed string) payload {
		var p payload
		p.View.Installed, p.Enterprise.ID = installed, enterprise
		if team != "" {
			p.Team = &struct {
				ID         string `json:"id"`
				Enterprise string `json:"enterprise_id"`
			}{ID: team}
		}
		return p
	}
	for p, want := range map[[3]string]error{
		{"T1", "", ""}: nil, {"T2", "", ""}: errOtherTeam, {"", "E1", ""}: nil, {"", "", ""}: errNoTeam, {"T2", "E2", ""}: errOtherTeam,
		{"T2", "", "T1"}: nil, {"T2", "", "T2"}: errOtherTeam, {"T2", "", "T3"}: errOtherTeam, {"", "", "T3"}: errNoTeam,
	} {
		require.ErrorIs(t, w.admits(from(p[0], p[1], p[2])), want, "%v", p)
	}
}
