package slacksim

import (
	"cmp"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// responder has the response_urls.
type responder struct {
	*world

	journal   *journal
	payloads  *payloads
	events    *events
	messages  *messages
	responses map[string]*responseURL
}

const (
	responseUses = 5
	responseLife = 30 * time.Minute
)

// responseURL lets the app answer one interaction for a while.
type responseURL struct {
	in       *installation
	channel  *channel
	user     string
	original *message // what replace_original and delete_original mean; nil after a command
	issued   time.Time
	uses     int
}

// newResponseURL issues a response_url. The caller holds mu.
func (s *responder) newResponseURL(in *installation, kind string, c *channel, p *Person, original *message) string {
	id := kind + "-" + randomHex(12)
	s.responses[id] = &responseURL{in: in, channel: c, user: p.ID, original: original, issued: s.clock.now()}
	return s.public + "/response/" + s.home(in).ID + "/" + id
}

// serveResponseURL takes a post to a response_url.
func (s *responder) serveResponseURL(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		http.Error(w, "request_timeout", http.StatusBadRequest)
		return
	}
	entry := LogEntry{Direction: FromApp, Kind: "response_url", Method: r.Method, URL: "/response/…", Request: string(body)}

	s.mu.Lock()
	fault := s.faults.take("response_url", s.clock.now())
	var status int
	var answer string
	if fault != nil && fault.Status != 0 && fault.Status != http.StatusOK {
		status, answer = fault.Status, cmp.Or(fault.Error, faultError(fault.Status))
		if fault.RetryAfter > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(fault.RetryAfter))
		}
	} else {
		status, answer = s.respond(s.responses[r.PathValue("id")], body) //nolint:contextcheck // events outlive the request
	}
	s.journal.logged(entry, status, []byte(answer))
	s.mu.Unlock()
	if fault != nil && fault.LostReply {
		panic(http.ErrAbortHandler) // done, but the app gets no answer
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, answer)
}

// gone reports whether there is no original, or it was deleted.
func (u *responseURL) gone() bool {
	return u.original == nil || u.original.subtype == tombstone || u.channel.find(u.original.ts) == nil
}

// respond does what one post asks for. The caller holds mu.
func (s *responder) respond(u *responseURL, body []byte) (status int, answer string) {
	switch {
	case u == nil:
		return http.StatusNotFound, "invalid_url"
	case s.clock.now().Sub(u.issued) > responseLife:
		return http.StatusNotFound, "expired_url"
	case u.uses >= responseUses:
		return http.StatusNotFound, "used_url"
	}
	if form, isForm := strings.CutPrefix(string(body), "payload="); isForm {
		text, err := unescapeForm(form)
		if err != nil {
			return http.StatusBadRequest, "invalid_payload"
		}
		body = []byte(text)
	}
	v, err := decodeJSON(body)
	o, ok := v.(object)
	if err != nil || !ok {
		return http.StatusBadRequest, "invalid_payload"
	}
	c := answerOf(o)
	if c.bool("delete_original") {
		if u.gone() {
			return http.StatusNotFound, "message_not_found"
		}
		u.uses++
		s.messages.remove(u.channel, u.original)
		return http.StatusOK, "ok"
	}
	k, f := c.contentOf()
	switch {
	case f != nil:
		return http.StatusBadRequest, f.code
	case k.empty():
		return http.StatusBadRequest, "no_text"
	}
	if c.bool("replace_original") {
		if u.gone() {
			return http.StatusNotFound, "message_not_found"
		}
		u.uses++
		m := u.original
		before := s.payloads.messageJSON(u.channel, m, true)
		m.text, m.attachments = k.text, k.attachments // its visibility never changes
		m.redraw(k.blocks)
		if k.gave.metadata {
			m.metadata = k.metadata
		}
		m.edited = object{"user": u.in.botUser, "ts": s.nextTS()}
		s.changed()
		s.events.tellOfApp(u.channel, m, "message_changed", before)
		return http.StatusOK, "ok"
	}
	m := &message{user: u.in.botUser, app: u.in, text: k.text, blocks: storedBlocks(k.blocks), attachments: k.attachments, metadata: k.metadata, visibleTo: u.user}
	if c.str("response_type") == "in_channel" {
		m.visibleTo = ""
		if m.threadTS, f = u.channel.replyTo(c.str("thread_ts")); f != nil {
			return http.StatusBadRequest, f.code
		}
	}
	u.uses++
	s.messages.store(u.channel, m)
	return http.StatusOK, "ok"
}
