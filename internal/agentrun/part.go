package agentrun

import "strings"

// A Part is one part of the result of a call that is more than JSON, for people and
// programs that show it. The model reads the Value of the [Result] and no part.
//
// All of it is the tool's: an address is text, which nobody follows.
type Part struct {
	Type     PartType `json:"type"`
	Text     string   `json:"text,omitempty"`
	MIMEType string   `json:"mime_type,omitempty"`
	Name     string   `json:"name,omitempty"`
	Title    string   `json:"title,omitempty"`
	URI      string   `json:"uri,omitempty"`
	Size     int      `json:"size,omitempty"`   // bytes of the content
	SHA256   string   `json:"sha256,omitempty"` // of the content
	Data     []byte   `json:"data,omitempty"`   // the content; nil if it was dropped because it is large
}

// PartType says what a [Part] is.
type PartType string

// The types. A tool may have others.
const (
	PartText     PartType = "text"
	PartData     PartType = "data" // structured content: Text is JSON
	PartImage    PartType = "image"
	PartAudio    PartType = "audio"
	PartResource PartType = "resource"      // a file: its Text, or its Data
	PartLink     PartType = "resource_link" // an address, of which nothing was fetched
)

// The bounds of the parts of one result.
const (
	MaxParts     = 100
	MaxPartData  = 256 << 10 // bytes of content that are kept, all parts together
	maxPartText  = MaxResult // bytes of text, all parts together
	maxPartLabel = 2 << 10   // bytes of each other text
)

// bounded are the parts within the bounds: a text is cut, and a content that has no
// room left is dropped as a whole, so that what is kept is what its hash says.
func bounded(parts []Part) []Part {
	var all []Part
	text, data := maxPartText, MaxPartData
	for _, p := range parts[:min(len(parts), MaxParts)] {
		for _, s := range []*string{(*string)(&p.Type), &p.MIMEType, &p.Name, &p.Title, &p.URI} {
			*s = cutAt(*s, maxPartLabel)
		}
		if p.Type == PartData && len(p.Text) > text {
			p.Size, p.Text = len(p.Text), "" // half of it is no JSON
		}
		p.Text = cutAt(p.Text, text)
		text -= len(p.Text)
		if len(p.Data) > data {
			p.Data = nil
		}
		data -= len(p.Data)
		all = append(all, p)
	}
	return all
}

func cutAt(s string, limit int) string {
	return strings.ToValidUTF8(s[:min(len(s), limit)], "")
}
