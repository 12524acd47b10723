package summary

import (
	"math/big"
	"strconv"
	"strings"
)

// currencies are the active codes of ISO 4217, by how many digits their minor
// unit has. Codes of funds, metals and tests are left out.
var currencies = map[int]string{
	0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX VND VUV XAF XOF XPF",
	2: "AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHF CNY COP CRC CUP CVE CZK " +
		"DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT " +
		"LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN " +
		"QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD UYU UZS " +
		"VED VES WST XCD XCG YER ZAR ZMW ZWG",
	3: "BHD IQD JOD KWD LYD OMR TND",
}

var minorDigits = func() map[string]int {
	all := map[string]int{}
	for digits, codes := range currencies {
		for code := range strings.FieldsSeq(codes) {
			all[code] = digits
		}
	}
	return all
}()

// minorUnits returns how many digits the minor unit of a currency has. Letters that are
// not ASCII are of no code, though some have one of ASCII as their capital.
func minorUnits(code string) (int, bool) {
	if len(code) != len("EUR") {
		return 0, false
	}
	n, ok := minorDigits[strings.ToUpper(code)]
	return n, ok
}

// maxDigits is how many digits a number may have that is computed with.
const maxDigits = 40

// A decimal is an exact number: digits times 10 to the power of -scale.
type decimal struct {
	negative bool
	digits   string // without leading zeros; empty for zero
	scale    int    // never negative
}

// newDecimal reads a number of JSON. One with more digits than anybody reads is
// refused.
func newDecimal(s string) (d decimal, ok bool) {
	if len(s) > 2*maxDigits || s == "" {
		return d, false
	}
	mantissa, exponent, scientific := strings.Cut(strings.ToLower(s), "e")
	power := 0
	if scientific {
		n, err := strconv.Atoi(exponent)
		if err != nil || n > maxDigits || n < -maxDigits {
			return d, false
		}
		power = n
	}
	mantissa, d.negative = strings.CutPrefix(mantissa, "-")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	d.digits, d.scale = whole+fraction, len(fraction)-power
	if d.digits == "" || strings.Trim(d.digits, "0123456789") != "" {
		return decimal{}, false
	}
	if d.scale < 0 {
		d.digits, d.scale = d.digits+strings.Repeat("0", -d.scale), 0
	}
	for d.scale > 0 && strings.HasSuffix(d.digits, "0") {
		d.digits, d.scale = d.digits[:len(d.digits)-1], d.scale-1
	}
	if d.digits = strings.TrimLeft(d.digits, "0"); d.digits == "" {
		d.negative, d.scale = false, 0
	}
	return d, len(d.digits) <= maxDigits
}

// isOne reports whether it is 1, for the singular.
func (d decimal) isOne() bool { return d.digits == "1" && d.scale == 0 && !d.negative }

// format writes all digits, with at least so many behind the point.
func (d decimal) format(least int) string {
	digits := d.digits
	if pad := d.scale + 1 - len(digits); pad > 0 {
		digits = strings.Repeat("0", pad) + digits
	}
	whole, fraction := digits[:len(digits)-d.scale], digits[len(digits)-d.scale:]
	for len(fraction) < least {
		fraction += "0"
	}
	out := grouped(whole)
	if fraction != "" {
		out += "." + fraction
	}
	if d.negative {
		out = "-" + out
	}
	return out
}

// grouped puts a comma before every three digits.
func grouped(whole string) string {
	var b strings.Builder
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// money writes an amount in minor or major units with its currency.
func money(d decimal, currency string, minor bool) (string, bool) {
	digits, known := minorUnits(currency)
	if !known {
		return "", false
	}
	if minor {
		if d.scale += digits; d.digits == "" {
			d.scale = 0
		}
	}
	return d.format(digits) + " " + strings.ToUpper(currency), true
}

// sizes are the units of bytes, each a thousand of the one before it.
var sizes = []string{"KB", "MB", "GB", "TB", "PB", "EB"}

// size writes a number of bytes, rounded half up to one decimal.
func size(d decimal) (string, bool) {
	if d.negative || d.scale > 0 {
		return "", false
	}
	if len(d.digits) <= 3 {
		return d.format(0) + " " + plural(d, "byte", ""), true
	}
	n, _ := new(big.Int).SetString(d.digits, 10)
	unit, thousand := big.NewInt(1), big.NewInt(1000)
	for i, name := range sizes {
		unit.Mul(unit, thousand)
		tenths := new(big.Int).Mul(n, big.NewInt(10))
		tenths.Add(tenths, new(big.Int).Quo(unit, big.NewInt(2))).Quo(tenths, unit)
		if tenths.Cmp(big.NewInt(10_000)) >= 0 && i < len(sizes)-1 {
			continue
		}
		rounded := decimal{digits: tenths.String(), scale: 1}
		if whole, ok := strings.CutSuffix(rounded.digits, "0"); ok {
			rounded = decimal{digits: whole}
		}
		return rounded.format(0) + " " + name, true
	}
	return "", false // unreachable: the last unit takes all that is left
}

// plural returns the word for so many.
func plural(d decimal, one, many string) string {
	switch {
	case d.isOne():
		return one
	case many != "":
		return many
	}
	return one + "s"
}
