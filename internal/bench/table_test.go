package bench

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestATableIsPrintedWithUnitsThatPeopleCanRead(t *testing.T) {
	var out strings.Builder
	table := Table{Name: "click", Redis: "fsync", About: "Clicks.", Columns: []string{"req/s", "CPU ms"}, Rows: []Row{
		{"bot", []float64{1234.5, 0.123}}, {"peer", []float64{17.25, unknown}},
	}}
	require.NoError(t, table.print(&out))
	require.Equal(t, `
click (redis.durability: fsync)
Clicks.
        req/s  CPU ms
  bot    1234    0.12
  peer   17.2       -
`, out.String())
}

func TestTheMedianOfEachColumnIsTaken(t *testing.T) {
	require.Equal(t, []float64{2, 5}, median([][]float64{{1, 9}, {3, 5}, {2, 4}}))
}

// A report in JSON holds every value, also one that is not known.
func TestAReportCanBeReadByPrograms(t *testing.T) {
	var out strings.Builder
	require.NoError(t, report{Tables: []Table{{Name: "click", Rows: []Row{{"peer", []float64{unknown}}}}}}.json(&out))
	var back report
	require.NoError(t, json.Unmarshal([]byte(out.String()), &back))
	require.Equal(t, []float64{-1}, back.Tables[0].Rows[0].Values)
}

func TestAPeerIsANameAndACommand(t *testing.T) {
	p, err := ParsePeer("Bolt, one script=node peer.js --fast")
	require.NoError(t, err)
	require.Equal(t, Peer{Name: "Bolt, one script", Command: []string{"node", "peer.js", "--fast"}}, p)
	for _, bad := range []string{"", "node", "=node", "name=", "name= "} {
		_, err := ParsePeer(bad)
		require.Error(t, err, bad)
	}
}

// What another process has used is known on Linux, and is never a guess.
func TestTheCPUOfAPeerIsKnownOrUnknown(t *testing.T) {
	_, known := usedBy(os.Getpid())
	_, err := os.Stat("/proc/self/stat")
	require.Equal(t, err == nil, known)
	_, known = usedBy(-1)
	require.False(t, known)
}
