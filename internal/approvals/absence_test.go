package approvals_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/countersign/countersign/internal/approvals"
)

const day = 24 * time.Hour

func away(u, delegate UserID, from, days int) Absence {
	at := opened.Add(time.Duration(from) * day)
	return Absence{User: u, Delegate: delegate, From: at, Until: at.Add(time.Duration(days) * day)}
}

func absences(t *testing.T, all ...Absence) Absences {
	t.Helper()
	var as Absences
	for _, a := range all {
		next, err := as.Set(a, opened)
		require.NoError(t, err)
		as = next
	}
	return as
}

func TestAnAbsenceIsSet(t *testing.T) {
	zone := away("ann", "bo", 0, 7)
	zone.From = zone.From.In(time.FixedZone("", 3600))
	before := absences(t, away("bo", "cy", 0, 10), away("gone", "ann", -9, 10), away("soon", "", 90, 60))
	for name, tt := range map[string]struct {
		a   Absence
		err error
	}{
		"a week":                      {zone, nil},
		"nobody stands in":            {away("ann", "", 0, 7), nil},
		"sixty days":                  {away("ann", "bo", 0, 60), nil},
		"sixty-one":                   {away("ann", "bo", 0, 61), ErrAbsence},
		"for oneself":                 {away("ann", "ann", 0, 7), ErrAbsence},
		"in a circle of two":          {away("cy", "bo", 0, 1), ErrAbsence},
		"in a circle of three":        {away("cy", "gone", 0, 1), nil},
		"each covers for the other":   {away("cy", "bo", 10, 7), nil},
		"the last day of the other's": {away("cy", "bo", 9, 7), ErrAbsence},
		"over already":                {away("ann", "bo", -7, 7), ErrAbsence},
		"ends as it begins":           {away("ann", "bo", 1, 0), ErrAbsence},
		"ends before it begins":       {away("ann", "bo", 9, -1), ErrAbsence},
		"of nobody":                   {away("", "bo", 0, 7), ErrInvalid},
		"of no text":                  {away("\xff", "bo", 0, 7), ErrInvalid},
		"to no text":                  {away("ann", "\xff", 0, 7), ErrInvalid},
		"without a beginning":         {Absence{User: "ann", Until: opened.Add(day)}, ErrInvalid},
		"in the year 12000":           {Absence{"ann", "bo", opened.AddDate(10_000, 0, 0), opened.AddDate(10_000, 0, 1)}, ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			was := slices.Clone(before)
			after, err := before.Set(tt.a, opened)
			require.ErrorIs(t, err, tt.err)
			require.Equal(t, was, before)
			if err != nil {
				require.Equal(t, before, after)
				return
			}
			got, ok := after.Of(tt.a.User, tt.a.From)
			require.True(t, ok)
			require.Equal(t, tt.a.Delegate, got.Delegate)
			require.Equal(t, time.UTC, got.From.Location())
			require.True(t, slices.IsSortedFunc(after, func(a, b Absence) int { return strings.Compare(string(a.User), string(b.User)) }))
		})
	}
	later, err := before.Set(away("ann", "bo", 2, 7), opened.Add(day))
	require.NoError(t, err)
	require.Len(t, later, 3, "what is over is dropped")
	again, err := later.Set(away("ann", "cy", 3, 7), opened.Add(day))
	require.NoError(t, err)
	require.Len(t, again, 3, "one a person")
	require.Len(t, again.Back("ann"), 2)
	require.Len(t, again, 3)
	_, ok := again.Of("ann", opened.Add(2*day))
	require.False(t, ok, "not yet")
	_, ok = again.Of("ann", opened.Add(10*day))
	require.False(t, ok, "back")
	_, err = before.Set(away("ann", "", 0, 7), time.Time{})
	require.ErrorIs(t, err, ErrInvalid)
}

// It is a circle only if all in it are away at one time.
func TestCirclesOfThree(t *testing.T) {
	for name, c := range map[string]struct {
		bo, cy, dee [2]int // from which day, and for how many
		circle      bool
	}{
		"all at one time":               {[2]int{0, 10}, [2]int{0, 10}, [2]int{5, 1}, true},
		"on one day":                    {[2]int{0, 5}, [2]int{4, 6}, [2]int{2, 9}, true},
		"the first is back by then":     {[2]int{0, 5}, [2]int{5, 5}, [2]int{0, 10}, false},
		"the first is not away by then": {[2]int{6, 4}, [2]int{0, 6}, [2]int{0, 10}, false},
		"the last is back by then":      {[2]int{0, 5}, [2]int{4, 6}, [2]int{0, 4}, false},
		"the last leaves only then":     {[2]int{0, 5}, [2]int{0, 9}, [2]int{5, 3}, false},
	} {
		t.Run(name, func(t *testing.T) {
			as := absences(t, away("bo", "cy", c.bo[0], c.bo[1]), away("cy", "dee", c.cy[0], c.cy[1]))
			_, err := as.Set(away("dee", "bo", c.dee[0], c.dee[1]), opened)
			if c.circle {
				require.ErrorIs(t, err, ErrAbsence)
				return
			}
			require.NoError(t, err)
		})
	}
	as := absences(t, away("a", "b", 0, 9), away("b", "c", 0, 9), away("c", "d", 0, 9), away("d", "e", 0, 9))
	_, err := as.Set(away("e", "a", 0, 9), opened)
	require.ErrorIs(t, err, ErrAbsence, "however many are in it")
	_, err = as.Set(away("e", "x", 0, 9), opened)
	require.NoError(t, err)
	_, err = as.Set(away("x", "a", 0, 9), opened)
	require.NoError(t, err, "a way into no circle")
}

func TestWhoIsAwayTooPassesItOn(t *testing.T) {
	as := absences(t, away("a", "b", 0, 9), away("b", "c", 1, 4), away("c", "d", 2, 9), away("d", "e", 0, 9), away("x", "d", 0, 9), away("y", "", 0, 9))
	names := func(u UserID, from int) (all []UserID) {
		for _, a := range as.DelegationsTo(u, opened.Add(time.Duration(from)*day)) {
			all = append(all, a.User)
		}
		return all
	}
	require.Equal(t, []UserID{"a"}, names("b", 0))
	require.Empty(t, names("c", 0), "b is there")
	require.Equal(t, []UserID{"b", "a"}, names("c", 1))
	require.Equal(t, []UserID{"c", "x", "b", "a"}, names("d", 2))
	require.Equal(t, []UserID{"d", "c", "x", "b"}, names("e", 2), "a is one too far")
	require.Equal(t, []UserID{"c", "x"}, names("d", 5), "b is back")
	require.Empty(t, names("a", 2))
	require.Empty(t, names("", 2), "who named nobody")

	chain := as.DelegationsTo("d", opened.Add(2*day))
	require.Equal(t, opened.Add(5*day), chain[3].Until, "a's, until b is back")
	require.Equal(t, opened.Add(2*day), chain[3].From)
	require.Equal(t, []UserID{"b", "c"}, chain[3].Via)
	require.Empty(t, chain[0].Via, "c named d")
	loop := Absences{away("a", "b", 0, 9), away("b", "a", 0, 9), away("c", "c", 0, 9)} // never set, but read
	require.Len(t, loop.DelegationsTo("a", opened), 1)
	require.Empty(t, loop.DelegationsTo("c", opened))
}

func TestAbsencesHoldTogether(t *testing.T) {
	users := []UserID{"a", "b", "c", "d", "e", ""}
	rapid.Check(t, func(t *rapid.T) {
		now := opened
		var as Absences
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			n := func(most int) int { return rapid.IntRange(0, most).Draw(t, "n") }
			now = now.Add(time.Duration(n(3)) * day)
			from := now.Add(time.Duration(n(12)-4) * day)
			a := Absence{users[n(5)], users[n(5)], from, from.Add(time.Duration(n(62)) * day)}
			was := slices.Clone(as)
			next, err := as.Set(a, now)
			require.Equal(t, was, as)
			if err == nil {
				as = next
				require.LessOrEqual(t, a.Until.Sub(a.From), MaxAbsence)
			}
			if n(9) == 0 {
				as = as.Back(users[n(5)])
			}
			raw, err := EncodeAbsences(as)
			require.NoError(t, err)
			read, err := DecodeAbsences(raw)
			require.NoError(t, err)
			require.Equal(t, append(Absences{}, as...), append(Absences{}, read...))
			for d := range 70 {
				at := now.Add(time.Duration(d) * day)
				for _, u := range users[:5] {
					// No circle: whoever is asked in turn is someone else.
					seen := map[UserID]bool{}
					for x := u; ; {
						require.False(t, seen[x], "a circle through %s", x)
						seen[x] = true
						away, ok := as.Of(x, at)
						if !ok || away.Delegate == "" {
							break
						}
						x = away.Delegate
					}
					hops := map[UserID]int{}
					for _, s := range as.DelegationsTo(u, at) {
						require.NotEqual(t, u, s.User)
						require.NotContains(t, hops, s.User)
						hops[s.User] = hops[as[slices.IndexFunc(as, func(a Absence) bool { return a.User == s.User })].Delegate] + 1
						require.LessOrEqual(t, hops[s.User], MaxHops)
						require.Len(t, s.Via, hops[s.User]-1)
						way := s.User
						for _, x := range append(slices.Clip(s.Via), u) {
							a, ok := as.Of(way, at)
							require.True(t, ok)
							require.Equal(t, a.Delegate, x)
							way = x
						}
						require.False(t, at.Before(s.From))
						require.True(t, at.Before(s.Until))
					}
				}
			}
		}
	})
}

func TestAbsencesKeepTheirShape(t *testing.T) {
	as := absences(t, away("bo", "", 1, 2), away("ann", "bo", 0, 7))
	got, err := EncodeAbsences(as)
	require.NoError(t, err)
	golden := filepath.Join("testdata", "absences.json")
	if *update {
		require.NoError(t, os.WriteFile(golden, append(got, '\n'), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got)+"\n")
	read, err := DecodeAbsences(want)
	require.NoError(t, err)
	require.Equal(t, as, read)

	none, err := DecodeAbsences(nil)
	require.NoError(t, err)
	require.Empty(t, none)
	for _, bad := range []string{`{`, `{}`, `{"v":2}`, `{"v":1,"absences":[{"user":""}]}`, `{"v":1,"absences":[{"user":"a"},{"user":"a"}]}`} {
		_, err := DecodeAbsences([]byte(bad))
		require.ErrorIs(t, err, ErrInvalid, bad)
	}
}

func FuzzDecodeAbsences(f *testing.F) {
	f.Add([]byte(`{"v":1,"absences":[{"user":"a","delegate":"b","from":"2026-01-02T03:04:05Z","until":"2026-01-03T03:04:05+02:00"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		as, err := DecodeAbsences(raw)
		if err != nil {
			return
		}
		for _, a := range as {
			for _, s := range as.DelegationsTo(a.Delegate, a.From) {
				require.NotEqual(t, a.Delegate, s.User)
			}
		}
	})
}
