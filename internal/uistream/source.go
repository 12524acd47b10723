package uistream

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/countersign/countersign/internal/approvals"
)

// The limits of what is offered as a source.
const (
	maxSources   = 20
	maxSourceURL = 2048
)

// sources are the addresses that a result of an MCP tool links to, for the client
// to list. A tool chooses only the address and its title, never the kind of a
// chunk, and only addresses of the web are passed on.
func sources(id approvals.ToolCallID, content json.RawMessage) []chunk {
	var result struct {
		Content []struct {
			Type  string `json:"type"`
			URI   string `json:"uri"`
			Name  string `json:"name"`
			Title string `json:"title"`
		} `json:"content"`
	}
	if json.Unmarshal(content, &result) != nil {
		return nil
	}
	var out []chunk
	for i, p := range result.Content {
		if p.Type != "resource_link" || !ofWeb(p.URI) || len(out) == maxSources {
			continue
		}
		title := p.Title
		if title == "" {
			title = p.Name
		}
		out = append(out, chunk{Type: typeSourceURL, SourceID: fmt.Sprintf("%s.%d", id, i), URL: p.URI, Title: title})
	}
	return out
}

// ofWeb reports whether a browser may be led to the address.
func ofWeb(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && len(uri) <= maxSourceURL && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil &&
		!strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || approvals.Invisible(r) })
}
