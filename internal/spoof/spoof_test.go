package spoof

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/approvals"
)

// marked writes the spoofs of s between brackets.
func marked(s string) string {
	var b strings.Builder
	at := 0
	for _, x := range Find(s) {
		fmt.Fprintf(&b, "%s[%s%s %+q]", s[at:x.From], x.Kind, x.Name, s[x.From:x.To])
		at = x.To
	}
	return b.String() + s[at:]
}

func TestWhatIsNotWhatItLooksLikeIsFound(t *testing.T) {
	for in, want := range map[string]string{
		"reports/p\u0430yments.csv":              `reports/p[scriptCyrillic "\u0430"]yments.csv`,
		"p\u0430\u0443pal":                       `p[scriptCyrillic "\u0430\u0443"]pal`,
		"\u0430.txt":                             `[scriptCyrillic "\u0430"].txt`,
		"/srv/\u0441\u043e\u0440\u0443/a.txt":    `/srv/[scriptCyrillic "\u0441\u043e\u0440\u0443"]/a.txt`,
		"\u0441\u043e\u0440\u0443":               `[scriptCyrillic "\u0441\u043e\u0440\u0443"]`,
		"Москвa":                                 `Москв[scriptLatin "a"]`,
		"\u0430\u0430\u0430z":                    `[scriptCyrillic "\u0430\u0430\u0430"][scriptLatin "z"]`,
		"g\u03bf\u03bfgle":                       `g[scriptGreek "\u03bf\u03bf"]gle`,
		"g\u0585\u0585gle":                       `g[scriptArmenian "\u0585\u0585"]gle`,
		"p\u200b\u0430ypal":                      `p[invisible "\u200b"][scriptCyrillic "\u0430"]ypal`,
		"p\u0430\u0301ypal":                      `p[scriptCyrillic "\u0430\u0301"]ypal`,
		"a\u0301\u0302\u0303\u0304":              "a\u0301\u0302\u0303\u0304",
		"a\u0301\u0302\u0303\u0304\u0305\u0305b": "a\u0301\u0302\u0303\u0304" + `[marks "\u0305\u0305"]b`,
		"a\u0301\u0301\u200b\u0301\u0301\u0301":  "a\u0301\u0301" + `[invisible "\u200b"]` + "\u0301\u0301" + `[marks "\u0301"]`,
		"a\ufe0f.txt":                            `a[invisible "\ufe0f"].txt`,
		"≤\ufe0f":                                `≤[invisible "\ufe0f"]`,
		"❤\ufe0f 1\ufe0f\u20e3 ⚠\ufe0f 👍🏽":       "❤\ufe0f 1\ufe0f\u20e3 ⚠\ufe0f 👍🏽",
	} {
		require.Equal(t, want, marked(in), "%+q", in)
	}
}

// Other forms of plain characters look like these, and no program takes them for
// these: a rule on a path does not hold them.
func TestOtherFormsOfPlainCharactersAreNamed(t *testing.T) {
	for in, want := range map[string]string{
		"p\uff41yments":                  `p[formfullwidth "\uff41"]yments`,
		"/srv\uff0fsecrets":              `/srv[formfullwidth "\uff0f"]secrets`,
		"https\uff1a//x":                 `https[formfullwidth "\uff1a"]//x`,
		"\uff52\uff4d -rf":               `[formfullwidth "\uff52\uff4d"] -rf`,
		"報告_p\uff41y.csv":                `報告_p[formfullwidth "\uff41"]y.csv`,
		"報告\uff0f秘密":                     `報告[formfullwidth "\uff0f"]秘密`,
		"\U0001d429\U0001d41a\U0001d432": `[formmathematical "\U0001d429\U0001d41a\U0001d432"]`,
		"pa\U0001d7cf":                   `pa[formmathematical "\U0001d7cf"]`,
		"\u210eost":                      `[formmathematical "\u210e"]ost`,
		"\u24df\u24d0y \U0001f130":       `[formenclosed "\u24df\u24d0"]y [formenclosed "\U0001f130"]`,
		"\u212aey":                       `[formKelvin sign "\u212a"]ey`,
		"https://\u0261ithub.com":        `https://[formphonetic "\u0261"]ithub.com`,
		"s\u1d04\u1d0fpe":                `s[formphonetic "\u1d04\u1d0f"]pe`,
		"github.com\u2215a.evil.example": `github.com[formlookalike slash "\u2215"]a.evil.example`,
		"de\u217cete":                    `de[formRoman numeral "\u217c"]ete`,
		"\uff41\u0301":                   `[formfullwidth "\uff41\u0301"]`,
		"\uff41\u0436":                   `[formfullwidth "\uff41"][scriptCyrillic "\u0436"]`,
		"① first, Ⓜ\ufe0f and 🅰\ufe0f":   "① first, Ⓜ\ufe0f and 🅰\ufe0f",
		"ＣＳＶファイルは３個（全部）、了解！": "ＣＳＶファイルは３個（全部）、了解！",
	} {
		require.Equal(t, want, marked(in), "%+q", in)
	}
}

// A dash that looks like a hyphen turns a flag into another argument.
func TestDashesThatAreReadAsThoseOfAFlagAreNamed(t *testing.T) {
	for in, want := range map[string]string{
		"delete ns prod \u2010\u2010dry-run=client": `delete ns prod [formlookalike hyphen "\u2010\u2010"]dry-run=client`,
		"\u2212n":                               `[formlookalike hyphen "\u2212"]n`,
		"x -\u2013check":                        `x -[formlookalike hyphen "\u2013"]check`,
		"x --dry\u2011run":                      `x --dry[formlookalike hyphen "\u2011"]run`,
		"x \u2014what-if":                       `x [formlookalike hyphen "\u2014"]what-if`,
		"x \u2014dry=1":                         `x [formlookalike hyphen "\u2014"]dry=1`,
		`["apply","` + "\u2010\u2010" + `dry"]`: `["apply","[formlookalike hyphen "\u2010\u2010"]dry"]`,
		"x\u200b\u2010n":                        `x[invisible "\u200b"][formlookalike hyphen "\u2010"]n`,
		"check\u2011in, 2010\u20132020, −5 °C, a – b, pre\u2011 and post\u2011, a—b": "check\u2011in, 2010\u20132020, −5 °C, a – b, pre\u2011 and post\u2011, a—b",
		"—Hola —dijo Ana—, ¿qué tal?":                                                "—Hola —dijo Ana—, ¿qué tal?",
		"git push --dry-run":                                                         "git push --dry-run",
	} {
		require.Equal(t, want, marked(in), "%+q", in)
	}
}

// int("10०") is 100 in Python, and parseInt("10०") is 10 in JavaScript.
func TestDigitsOfAnotherScriptWithinANumberAreNamed(t *testing.T) {
	for in, want := range map[string]string{
		"10\u0966":                   `10[formdigit of another script "\u0966"]`,
		"\u0661\u06612 EUR":          `[formdigit of another script "\u0661\u0661"]2 EUR`,
		"5, \u0665 and \u0966\u0967": "5, \u0665 and \u0966\u0967",
	} {
		require.Equal(t, want, marked(in), "%+q", in)
	}
}

// TestTextsOfManyLanguagesAreLeftAsTheyAre: who reads them would read nothing
// else than brackets otherwise.
func TestTextsOfManyLanguagesAreLeftAsTheyAre(t *testing.T) {
	for language, text := range map[string]string{
		"English":    "Delete the café's résumé, naïve coöperation — 5 µm, 20 °C, x² ≤ 3",
		"German":     "Größe, Übermut, Straße; Grüße aus Köln",
		"French":     "L’été, où çà ? Œuvre, naïveté",
		"Turkish":    "İstanbul'da ılık rüzgâr, ğüşöç",
		"Vietnamese": "Tiếng Việt: được, nghĩa, trường hợp; và chữ tổ hợp a\u0302\u0301",
		"Polish":     "Zażółć gęślą jaźń",
		"Russian":    "Удали отчёт за март: reports/отчёт.csv, и скажи «о том, с кем» я у вас. IT-отдел",
		"Ukrainian":  "Зберегти пʼять файлів у теці «Їжак»",
		"Bulgarian":  "Изтрий файла с отчета",
		"Greek":      "Διάγραψε το αρχείο της αναφοράς, ο κ. Παπάς το ζήτησε",
		"Armenian":   "Ջնջիր հաշվետվությունը",
		"Georgian":   "წაშალე ანგარიში",
		"Hebrew":     "מחק את הדוח, שָׁלוֹם",
		"Arabic":     "احذف التقرير، السَّلَامُ عَلَيْكُمْ ١٢٣",
		"Persian":    "گزارش را پاک کن",
		"Hindi":      "रिपोर्ट हटाओ, क्षत्रिय ज़्यादा १२३",
		"Bengali":    "প্রতিবেদন মুছে ফেলুন",
		"Tamil":      "அறிக்கையை நீக்கு",
		"Thai":       "ลบรายงานที่นี่ น้ำ ๑๒๓",
		"Burmese":    "အစီရင်ခံစာကို ဖျက်ပါ မြို့ မျှို့",
		"Tibetan":    "བོད་སྐད་བསྒྲུབས་རྒྱུ",
		"Chinese":    "删除报告CSV文件，谢谢",
		"Taiwanese":  "刪除ㄅㄠˋ告",
		"Japanese":   "レポートをDeleteする。カレーは３個、人々のコーヒー",
		"Korean":     "Slack에서 보고서를 삭제",
		"Amharic":    "ሪፖርቱን ሰርዝ",
	} {
		require.Empty(t, Find(text), language)
	}
}

// FuzzFind: what is left of a text without its spoofs has none.
func FuzzFind(f *testing.F) {
	for _, s := range []string{
		"", "plain", "p\u0430ypal", "\u0441\u043e\u0440\u0443 x", "a\u0301\u0301\u0301\u0301\u0301", "\xff\u0301", "1\ufe0f\u20e3",
		"Москвa и \u0441", "p\uff41y\uff0f\u0436", "\u24d0\u0436 \U0001d41a\u0301", "≤\ufe0f❤\ufe0f", "漢字かなカナLatin한글", "\u0430\u200b\u0430ж", "⟦\u0301\u0301\u0301\u0301\u0301", strings.Repeat("\u0488", 50),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var rest strings.Builder
		at := 0
		for _, x := range Find(s) {
			require.LessOrEqual(t, at, x.From)
			require.Less(t, x.From, x.To)
			require.LessOrEqual(t, x.To, len(s))
			require.Equal(t, x.Kind == Script || x.Kind == Form, x.Name != "")
			rest.WriteString(s[at:x.From])
			switch stretch := s[x.From:x.To]; {
			case strings.TrimSpace(stretch) == "":
				rest.WriteString(" ") // words end there
			case x.Kind == Form:
				rest.WriteString("-") // an enclosed letter is no letter
			}
			at = x.To
		}
		rest.WriteString(s[at:])
		if !utf8.ValidString(s) {
			return // what is left may form other characters
		}
		left := rest.String()
		marks := 0
		for range approvals.Unseen(left) {
			require.Fail(t, "something does not show", "%+q", left)
		}
		for _, r := range left {
			switch {
			case unicode.In(r, unicode.Mn, unicode.Me):
				marks++
			case !unicode.Is(unicode.Mc, r):
				marks = 0
			}
			require.LessOrEqual(t, marks, 4, "%+q", left)
		}
		for _, w := range wordsOf(left) {
			require.False(t, w.mixed(), "%+q holds %v", left[w.from:w.to], w.scripts)
		}
		require.Empty(t, foreignLetters(left), "%+q of %+q", left, s)
	})
}
