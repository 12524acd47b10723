package inbound

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
		{"T1", "", ""}: nil, {"T2", "", ""}: ErrOtherTeam, {"", "E1", ""}: nil, {"", "", ""}: ErrNoTeam, {"T2", "E2", ""}: ErrOtherTeam,
		{"T2", "", "T1"}: nil, {"T2", "", "T2"}: ErrOtherTeam, {"T2", "", "T3"}: ErrOtherTeam, {"", "", "T3"}: ErrNoTeam,
	} {
		require.ErrorIs(t, w.admits(from(p[0], p[1], p[2])), want, "%v", p)
	}
}
