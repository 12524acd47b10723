// Package page is what a person clicks in: the simulated workspace as a
// small Slack, over slacksim's /sim/ API. The source is in web (React and
// TypeScript); what is served is the bundle in dist, which is committed, so
// that the Go program needs no npm. `make page` builds it, and `make
// page-check` fails when it is not what the source gives.
package page

import (
	"embed"
	"io/fs"
	"net/http"
)

//go:embed dist
var files embed.FS

// The page loads nothing from anywhere else. Messages are hostile text, and
// the browser itself refuses every script that would parse a string as HTML.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"frame-src 'self'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the page and its files, and nothing else.
func Handler() http.Handler {
	dist, err := fs.Sub(files, "dist")
	if err != nil {
		panic("page: " + err.Error()) // unreachable: the name is valid
	}
	serve := http.FileServerFS(dist)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
