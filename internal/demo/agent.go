package demo

import (
	"crypto/sha256"
	"fmt"

	"github.com/countersign/countersign/internal/config"
)

// addAgent adds an agent of the visitor's, which runs elsewhere and asks here with
// the demo's token. It is Alice's, so others approve what it asks.
func (d *demo) addAgent(c *config.Config) {
	c.RemoteAgents = append(c.RemoteAgents, config.RemoteAgent{
		Name: "visitor", Owner: "U0ALICE", Channel: chatChannel,
		Tokens: []string{fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(d.token)))},
		Doors:  config.Doors,
	})
}
