// Package page is what a person clicks in: the simulated workspace as a
// single web page over slacksim's /sim/ API.
package page

import (
	"embed"
	"net/http"
)

//go:embed *.html *.js *.css
var files embed.FS

// Handler serves the page and its files, and nothing else.
func Handler() http.Handler {
	serve := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", "default-src 'self'; img-src 'self' https: data:; frame-ancestors 'none'")
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-cache")
		serve.ServeHTTP(w, r)
	})
}
