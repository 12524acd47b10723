// Package chat is a small chat on the web for the demo, on useChat of the AI SDK,
// beside the page of its Slack. The source is in web (React and TypeScript); what
// is served is the bundle in dist, which is committed, so that the Go program needs
// no npm: `npm run build` in web makes it.
//
// The demo has no login: the page says as whom it acts. A request that does must
// prove with a token that it comes from the page, which no other site can read.
package chat

import (
	"crypto/rand"
	"crypto/subtle"
	"embed"
	"encoding/json"
	"io/fs"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
)

// Path is where the page is served.
const Path = "/chat/"

//go:embed dist
var files embed.FS

// The page loads nothing from anywhere else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// A Person is somebody as whom a visitor can act.
type Person struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Config is what the page works with.
type Config struct {
	Server  *url.URL          // of the chats
	People  []Person          // the first of them chats, and the second decides, unless the visitor says otherwise
	Tokens  map[string]string // of the people, by their id
	Prompts []string          // to try
	AnyHost bool              // other machines may load the page
}

// Headers of requests of the page.
const (
	headerPerson = "Demo-Person"
	headerToken  = "Demo-Token"
)

// Handler serves the page under [Path].
func Handler(c Config) http.Handler {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		panic("chat: " + err.Error()) // unreachable: the name is valid
	}
	page := &page{c: c, token: rand.Text(), proxy: &httputil.ReverseProxy{
		FlushInterval: -1, // chunks are sent as they come
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(c.Server)
			for _, name := range []string{"Origin", "Cookie", headerPerson, headerToken} {
				r.Out.Header.Del(name)
			}
			r.Out.Header.Set("Authorization", "Bearer "+c.Tokens[r.In.Header.Get(headerPerson)])
		},
	}}
	routes := http.NewServeMux()
	routes.HandleFunc(Path+"setup", page.setup)
	routes.Handle(Path+"api/", http.StripPrefix(strings.TrimSuffix(Path, "/"), http.HandlerFunc(page.api)))
	routes.Handle(Path, http.StripPrefix(Path, http.FileServerFS(dist)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		if !c.AnyHost && !local(r.Host) { // a name that was pointed at this machine (DNS rebinding)
			http.Error(w, "the demo is not served under this name", http.StatusForbidden)
			return
		}
		routes.ServeHTTP(w, r)
	})
}

type page struct {
	c     Config
	token string
	proxy *httputil.ReverseProxy
}

// setup tells the page what it works with. Pages of other sites cannot read it.
func (p *page) setup(w http.ResponseWriter, r *http.Request) {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		http.Error(w, "another site's page may not use the demo", http.StatusForbidden)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"people": p.c.People, "prompts": p.c.Prompts, "token": p.token}) // nobody is left to tell of an error
}

// api passes a request of the page on, as the person that it names.
func (p *page) api(w http.ResponseWriter, r *http.Request) {
	mine := subtle.ConstantTimeCompare([]byte(r.Header.Get(headerToken)), []byte(p.token)) == 1
	if !mine || p.c.Tokens[r.Header.Get(headerPerson)] == "" {
		http.Error(w, "only the page of the demo may act as its people", http.StatusForbidden)
		return
	}
	p.proxy.ServeHTTP(w, r)
}

func local(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	ip, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return name == "localhost" || err == nil && ip.IsLoopback()
}
