package uistream

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/url"
	"strings"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/approvals"
)

// The limits of what is shown of the parts of a result.
const (
	maxSources   = 20
	maxSourceURL = 2048
)

// media are the types of files that a page may be handed. None of them can hold a
// script.
var media = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true,
	"audio/mpeg": true, "audio/wav": true, "audio/ogg": true, "audio/mp4": true, "audio/webm": true,
}

// sources are the parts of a result that clients show beside it: links, images and
// files. A tool chooses what is in them, never the kind of a chunk; only addresses
// of the web and files without scripts are passed on.
func sources(r agentrun.ToolReturn) []chunk {
	var out []chunk
	for i, p := range r.Parts {
		if len(out) == maxSources {
			break
		}
		id := fmt.Sprintf("%s.%d", r.CallID, i)
		kind, _, err := mime.ParseMediaType(p.MIMEType)
		switch {
		case p.Type == agentrun.PartLink && ofWeb(p.URI):
			out = append(out, chunk{Type: typeSourceURL, SourceID: id, URL: p.URI, Title: titleOf(p)})
		case (p.Type == agentrun.PartImage || p.Type == agentrun.PartAudio) && err == nil && media[kind] && len(p.Data) > 0:
			out = append(out, chunk{Type: typeFile, URL: "data:" + kind + ";base64," + base64.StdEncoding.EncodeToString(p.Data), MediaType: kind})
		case p.Type == agentrun.PartResource && err == nil && titleOf(p) != "":
			out = append(out, chunk{Type: typeSourceDocument, SourceID: id, MediaType: kind, Title: titleOf(p)})
		}
	}
	return out
}

// titleOf names a part for people.
func titleOf(p agentrun.Part) string {
	for _, s := range []string{p.Title, p.Name, p.URI} {
		if s != "" {
			return approvals.Visible(s)
		}
	}
	return ""
}

// part is the chunk as a part of a message.
func (c chunk) part() map[string]any {
	p := map[string]any{"type": c.Type}
	for key, v := range map[string]string{"sourceId": c.SourceID, "url": c.URL, "title": c.Title, "mediaType": c.MediaType} {
		if v != "" {
			p[key] = v
		}
	}
	return p
}

// ofWeb reports whether a browser may be led to the address.
func ofWeb(uri string) bool {
	u, err := url.Parse(uri)
	return err == nil && len(uri) <= maxSourceURL && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && u.User == nil &&
		!strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || approvals.Invisible(r) })
}
