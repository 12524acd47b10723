package tools_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/tools"
)

func TestSecretsAreConcealedWholeWhicheverComesFirst(t *testing.T) {
	secrets := tools.HeaderSecrets(map[string]string{"Authorization": "Bearer hunter2-long", "X-Key": "hunter2", "X-On": "on"})
	for _, x := range []struct{ text, want string }{
		{"Bearer hunter2-long is wrong", "[redacted] is wrong"},
		{"no token hunter2-long on file", "no token [redacted] on file"},
		{"hunter2", "[redacted]"},
		{"nothing", "nothing"},
	} {
		require.Equal(t, x.want, tools.Conceal(x.text, secrets...))
	}
}
