package bench

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/redis/go-redis/v9"
	"github.com/slack-go/slack"

	"github.com/countersign/countersign/internal/state"
)

// nothing is the floor that costs what the load and HTTP cost.
const nothing = "answers 200"

// floors are servers that do only a part of what the bot does with a click, each a
// little more than the one before, and one that is written as most bots are.
func (b *bench) floors(ctx context.Context) ([]target, error) {
	client, err := state.Dial(b.redis.url)
	if err != nil {
		return nil, err
	}
	b.after(client.Close)
	f := &floor{client: client, secret: b.slack.SigningSecret(), key: b.fresh()}
	var all []target
	for _, x := range []struct {
		name   string
		handle func(r *http.Request) error
	}{
		{nothing, f.reads},
		{"reads, checks the HMAC", func(r *http.Request) error { _, err := f.checked(r); return err }},
		{"and reads form and JSON", func(r *http.Request) error { _, err := f.read(r); return err }},
		{"and runs one script", f.commits},
		{"slack-go, one HSET", f.usual},
	} {
		addr, err := b.serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := x.handle(r); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
			}
		}))
		if err != nil {
			return nil, err
		}
		all = append(all, target{name: x.name, addr: addr})
	}
	return all, nil
}

type floor struct {
	client redis.UniversalClient
	secret string
	key    string
}

func (*floor) reads(r *http.Request) error {
	_, err := io.Copy(io.Discard, r.Body)
	return err
}

func (f *floor) checked(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	mac := hmac.New(sha256.New, []byte(f.secret))
	_, _ = io.WriteString(mac, "v0:"+r.Header.Get("X-Slack-Request-Timestamp")+":") // a hash takes every write
	_, _ = mac.Write(body)                                                          // as above
	if !hmac.Equal([]byte("v0="+hex.EncodeToString(mac.Sum(nil))), []byte(r.Header.Get("X-Slack-Signature"))) {
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

func (f *floor) read(r *http.Request) (pressed, error) {
	body, err := f.checked(r)
	if err != nil {
		return pressed{}, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return pressed{}, err
	}
	var p pressed
	err = json.Unmarshal([]byte(form.Get("payload")), &p)
	if err == nil && len(p.Actions) == 0 {
		err = errors.New("nothing was pressed")
	}
	return p, err
}

// decide is the least that decides: once for each request, and marked as due.
var decide = redis.NewScript(`
if redis.call('SET', KEYS[1], '1', 'NX', 'PX', 600000) then
  redis.call('HSET', KEYS[2], 'doc', ARGV[1], 'v', '2')
  redis.call('ZADD', KEYS[3], 1, ARGV[2])
end
return 1`)

func (f *floor) commits(r *http.Request) error {
	p, err := f.read(r)
	if err != nil {
		return err
	}
	value := p.Actions[0].Value
	decision := fmt.Sprintf(`{"by":%q,"value":%q,"at":%q}`, p.User.ID, value, p.Actions[0].TS)
	keys := []string{f.key + ":{p}:once:" + value + p.Actions[0].TS, f.key + ":{p}:" + value, f.key + ":{p}:due"}
	return decide.Run(r.Context(), f.client, keys, decision, value).Err()
}

// usual is a handler as the README of slack-go has it.
func (f *floor) usual(r *http.Request) error {
	v, err := slack.NewSecretsVerifier(r.Header, f.secret)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(io.TeeReader(r.Body, &v))
	if err := errors.Join(err, v.Ensure()); err != nil {
		return err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return err
	}
	var c slack.InteractionCallback
	if err := json.Unmarshal([]byte(form.Get("payload")), &c); err != nil {
		return err
	}
	if len(c.ActionCallback.BlockActions) == 0 {
		return errors.New("nothing was pressed")
	}
	a := c.ActionCallback.BlockActions[0]
	return f.client.HSet(r.Context(), f.key+":"+a.Value, "by", c.User.ID, "at", a.ActionTs).Err()
}

// clickTable prints what was measured of clicks.
func (b *bench) clickTable(d drawn, targets []target, rounds map[string][][]float64) error {
	t := Table{Name: "click", About: fmt.Sprintf(clickAbout, d.size()), Columns: clickColumns}
	middle := map[string][]float64{}
	for name, got := range rounds {
		middle[name] = median(got)
	}
	for _, x := range slices.Backward(targets) {
		m := middle[x.name]
		ratios := []float64{middle[deciding][perSecond] / m[perSecond], middle[withDrawing][perSecond] / m[perSecond]}
		t.Rows = append(t.Rows, Row{x.name, append(ratios, above(m, middle[nothing])...)})
	}
	return b.table(t)
}

// above returns what was measured with the CPU that is more than that of the load.
func above(m, load []float64) []float64 {
	m = slices.Clone(m)
	m[processCPU] = max(0, m[processCPU]-load[processCPU])
	return m
}

// size is how long the body of a click is.
func (d drawn) size() int { return len("payload=") + len(url.QueryEscape(d.payload)) }
