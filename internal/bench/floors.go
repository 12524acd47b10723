package bench

import (
	"context"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/redis/go-redis/v9"
	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// nothing is the floor that costs what the load and HTTP cost.
const nothing = "answers 200"

// A floor is a server that does only a part of what the bot does with a request.
type floor struct {
	name   string
	handle func(r *http.Request) error
}

// floors serves floors, which get the same requests as the bot.
func (b *bench) floors(ctx context.Context, running *ends, sent func(int) ([]request, error), all ...floor) ([]subject, error) {
	var out []subject
	for _, x := range all {
		addr, err := running.serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := x.handle(r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		if err != nil {
			return nil, err
		}
		out = append(out, subject{name: x.name, addrs: []string{addr}, conns: connections, sent: sent})
	}
	return out, nil
}

// clickFloors are each a little more than the one before; the last one is written as
// most bots are.
func (b *bench) clickFloors(ctx context.Context, running *ends, sent func(int) ([]request, error)) ([]subject, error) {
	p, err := b.parts(running)
	if err != nil {
		return nil, err
	}
	return b.floors(
		ctx, running, sent,
		floor{nothing, reads},
		floor{"reads, checks the HMAC", func(r *http.Request) error { _, err := p.checked(r); return err }},
		floor{"and reads form and JSON", func(r *http.Request) error { _, err := p.clicked(r); return err }},
		floor{"and runs one script", p.decides},
		floor{"slack-go, one HSET", p.usual},
	)
}

// parts are the operations from which the floors are built.
type parts struct {
	client redis.UniversalClient
	secret string
	key    string
}

func (b *bench) parts(running *ends) (*parts, error) {
	client, err := state.Dial(b.redis.url)
	if err != nil {
		return nil, err
	}
	running.after(client.Close)
	return &parts{client: client, secret: b.slack.SigningSecret(), key: b.fresh()}, nil
}

func reads(r *http.Request) error {
	_, err := io.Copy(io.Discard, r.Body)
	return err
}

func (p *parts) checked(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	want := slacksim.Sign(p.secret, r.Header.Get("X-Slack-Request-Timestamp"), body)
	if !hmac.Equal([]byte(want), []byte(r.Header.Get("X-Slack-Signature"))) {
		return nil, errors.New("the signature does not match")
	}
	return body, nil
}

// A pressed button is what a click has to say to a bot.
type pressed struct {
	Type    string              `json:"type"`
	Team    struct{ ID string } `json:"team"`
	User    struct{ ID string } `json:"user"`
	Actions []struct {
		ID    string `json:"action_id"`
		Value string `json:"value"`
		TS    string `json:"action_ts"`
	} `json:"actions"`
}

func (p *parts) clicked(r *http.Request) (pressed, error) {
	var click pressed
	body, err := p.checked(r)
	if err == nil {
		err = payload(body, &click)
	}
	if err == nil && len(click.Actions) == 0 {
		err = errors.New("nothing was pressed")
	}
	return click, err
}

// payload reads what is in the form that Slack sends.
func payload(body []byte, into any) error {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return err
	}
	return json.Unmarshal([]byte(form.Get("payload")), into)
}

// decide is the least that decides: once for each request, and marked as due.
var decide = redis.NewScript(`
if redis.call('SET', KEYS[1], '1', 'NX', 'PX', 600000) then
  redis.call('HSET', KEYS[2], 'doc', ARGV[1], 'v', '2')
  redis.call('ZADD', KEYS[3], 1, ARGV[2])
end
return 1`)

// commit runs a script that stores the document unless one with this name was stored.
func (p *parts) commit(ctx context.Context, once, id, doc string) error {
	in := p.key + ":{p}:"
	return decide.Run(ctx, p.client, []string{in + "once:" + once, in + id, in + "due"}, doc, id).Err()
}

func (p *parts) decides(r *http.Request) error {
	click, err := p.clicked(r)
	if err != nil {
		return err
	}
	a := click.Actions[0]
	return p.commit(r.Context(), a.Value+a.TS, a.Value, fmt.Sprintf(`{"by":%q,"value":%q,"at":%q}`, click.User.ID, a.Value, a.TS))
}

// usual is a handler as the README of slack-go has it.
func (p *parts) usual(r *http.Request) error {
	v, err := slack.NewSecretsVerifier(r.Header, p.secret)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.TeeReader(r.Body, &v))
	if err := errors.Join(err, v.Ensure()); err != nil {
		return err
	}
	var c slack.InteractionCallback
	if err := payload(body, &c); err != nil {
		return err
	}
	if len(c.ActionCallback.BlockActions) == 0 {
		return errors.New("nothing was pressed")
	}
	a := c.ActionCallback.BlockActions[0]
	return p.client.HSet(r.Context(), p.key+":"+a.Value, "by", c.User.ID, "at", a.ActionTs).Err()
}

// hookFloors are those of the hook.
func (b *bench) hookFloors(ctx context.Context, running *ends, sent func(int) ([]request, error)) ([]subject, error) {
	p, err := b.parts(running)
	if err != nil {
		return nil, err
	}
	return b.floors(
		ctx, running, sent,
		floor{nothing, reads},
		floor{"reads JSON", func(r *http.Request) error { _, err := proposed(r); return err }},
		floor{"and runs one script", func(r *http.Request) error {
			c, err := proposed(r)
			if err != nil {
				return err
			}
			return p.commit(r.Context(), c.ID, c.ID, string(c.Input))
		}},
	)
}

// A proposal is what a call of a coding agent has to say to a hook.
type proposal struct {
	Tool  string          `json:"tool_name"`
	Input json.RawMessage `json:"tool_input"`
	ID    string          `json:"tool_use_id"`
}

func proposed(r *http.Request) (proposal, error) {
	var c proposal
	err := json.NewDecoder(r.Body).Decode(&c)
	if err == nil && c.ID == "" {
		err = errors.New("the call has no id")
	}
	return c, err
}
