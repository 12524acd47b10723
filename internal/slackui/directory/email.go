package directory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/countersign/countersign/internal/approvals"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// ErrNoAccount is the answer to an address that no account has.
var ErrNoAccount = errors.New("no account")

// named is what is remembered of an address.
type named struct {
	At   time.Time `json:"at"`
	User string    `json:"user,omitempty"` // empty: nobody has it
}

func (n named) fetched() time.Time { return n.At }

// address returns an address in the letters in which it is looked up. Outside of ASCII,
// upper and lower case lead to letters of other addresses: İ to i, and the Kelvin sign to k.
func address(email string) (string, bool) {
	email = strings.Trim(email, " ")
	if email == "" || strings.ContainsFunc(email, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", false
	}
	return strings.ToLower(email), true
}

// ByEmail returns whose the address is: an active full member of the workspace or
// its organization, as Slack says now or said no longer ago than the directory
// allows.
func (d *Directory) ByEmail(ctx context.Context, email string) (approvals.UserID, error) {
	email, ok := address(email)
	if !ok {
		return "", ErrNoAccount
	}
	asking, cancel := context.WithTimeout(ctx, slackapi.LookupTime)
	defer cancel()
	sum := sha256.Sum256([]byte(email)) // addresses are not kept
	n, err := remembered(asking, d, "email", "account", hex.EncodeToString(sum[:]), func(ctx context.Context, _ named) (named, error) {
		at := d.Now()
		u, err := d.API.UserByEmail(ctx, email)
		if slackapi.HasCode(err, "users_not_found") {
			return named{At: at}, nil
		}
		if err != nil {
			return named{}, err
		}
		return named{At: at, User: u.ID}, nil
	})
	if err != nil {
		return "", err
	}
	if n.User == "" {
		return "", ErrNoAccount
	}
	return approvals.UserID(n.User), d.Admit(asking, n.User, "")
}
