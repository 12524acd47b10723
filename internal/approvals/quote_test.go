package approvals_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	. "github.com/countersign/countersign/internal/approvals"
)

func TestAQuoteIsCutBetweenCharactersAndSaysHowManyAreLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want Quote
	}{
		"nothing":        {"", Quote{}},
		"blanks":         {" \n\t ", Quote{}},
		"short":          {"  because \n", Quote{Text: "because"}},
		"exactly":        {strings.Repeat("é", MaxQuote), Quote{Text: strings.Repeat("é", MaxQuote)}},
		"one too many":   {strings.Repeat("🦊", MaxQuote) + "x", Quote{Text: strings.Repeat("🦊", MaxQuote), Left: 1}},
		"many too many":  {strings.Repeat("a", MaxQuote) + strings.Repeat("ü", 7000), Quote{Text: strings.Repeat("a", MaxQuote), Left: 7000}},
		"no text at all": {"a\xff\xfeb", Quote{Text: "a\ufffdb"}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, QuoteOf(c.text)) })
	}
}

func FuzzQuoteOf(f *testing.F) {
	f.Add("a\xff" + strings.Repeat("🦊", MaxQuote))
	f.Fuzz(func(t *testing.T, text string) {
		q := QuoteOf(text)
		require.True(t, utf8.ValidString(q.Text))
		require.LessOrEqual(t, utf8.RuneCountInString(q.Text), MaxQuote)
		whole := strings.TrimSpace(strings.ToValidUTF8(text, "\ufffd"))
		require.True(t, strings.HasPrefix(whole, q.Text))
		require.Equal(t, utf8.RuneCountInString(whole), utf8.RuneCountInString(q.Text)+q.Left)
	})
}
