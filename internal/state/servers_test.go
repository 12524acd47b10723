package state_test

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/state"
)

func TestOldVersionsOfRedisAreKnown(t *testing.T) {
	for version, want := range map[string]struct{ supported, known bool }{
		"7.0.15": {true, true}, "6.2": {true, true}, "10.0.0": {true, true}, "6.0.16": {false, true}, "5.0.7": {false, true}, "5.9": {false, true},
		"": {}, "7": {}, "x.y.z": {},
	} {
		supported, known := state.Supported(version)
		require.Equal(t, want.supported, supported, version)
		require.Equal(t, want.known, known, version)
	}
}

// informing returns a server that answers INFO with this.
func informing(t *testing.T, answer string) *miniredis.Miniredis {
	t.Helper()
	m := miniredis.RunT(t)
	m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
		switch {
		case !strings.EqualFold(cmd, "INFO"):
			return false
		case strings.HasPrefix(answer, "NOPERM"):
			c.WriteError(answer)
		default:
			c.WriteBulk(answer)
		}
		return true
	})
	return m
}

// The version counts whatever durability is asked for, alone and in a cluster. A server
// that does not tell it is taken at the operator's word.
func TestOpenRefusesAServerThatIsTooOld(t *testing.T) {
	const refused = "is version 6.0.16, which lacks what the store needs; use Redis 6.2 or newer, or Valkey"
	for name, c := range map[string]struct{ info, refused string }{
		"too old":             {"# Server\r\nredis_version:6.0.16\r\nos:Linux\r\n", refused},
		"old, in part":        {"redis_version:6.0.16\r\n", refused},
		"the oldest":          {"# Server\r\nredis_version:6.2.0\r\n", ""},
		"Valkey":              {"# Server\r\nredis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:8.0.1\r\n", ""},
		"Valkey alone":        {"# Server\r\nserver_name:valkey\r\nvalkey_version:9.0.0\r\n", ""},
		"no version":          {"# Server\r\nos:Linux\r\n", ""},
		"no name of sections": {"os:Linux\r\n", ""},
		"nothing":             {"", ""},
		"INFO is refused":     {"NOPERM this user has no permissions to run the 'info' command", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := informing(t, c.info)
			for _, url := range []string{"redis://" + m.Addr(), "redis://" + m.Addr() + "?addr=" + m.Addr()} {
				s, err := state.Open(t.Context(), state.Options{URL: url, Durability: state.None})
				if c.refused != "" {
					require.ErrorContains(t, err, c.refused)
					continue
				}
				require.NoError(t, err)
				_, err = s.Servers(t.Context())
				require.NoError(t, err)
				require.NoError(t, s.Close())
			}
		})
	}
}

// A server that goes away between two questions has refused nothing: it is asked again.
func TestAServerThatGoesAwayRefusesNothing(t *testing.T) {
	for _, gone := range []string{"INFO", "CONFIG"} {
		for answer, refused := range map[string]bool{"": false, "LOADING Redis is loading the dataset in memory": false, "NOPERM this user has no permissions": true} {
			t.Run(gone+" "+answer, func(t *testing.T) {
				m := miniredis.RunT(t)
				s, err := state.Open(t.Context(), state.Options{URL: "redis://" + m.Addr(), Durability: state.None})
				require.NoError(t, err)
				m.Server().SetPreHook(func(c *server.Peer, cmd string, _ ...string) bool {
					switch {
					case !strings.EqualFold(cmd, gone):
						return false
					case answer == "":
						c.Close()
					default:
						c.WriteError(answer)
					}
					return true
				})
				_, err = s.Servers(t.Context())
				require.Equal(t, refused, err == nil)
				require.Equal(t, !refused, state.Passes(err))
				require.NoError(t, s.Close())
			})
		}
	}
}
