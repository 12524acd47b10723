package policy

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// There noon is still the day before in UTC, or midnight is.
func TestAHolidayIsADayOfItsZone(t *testing.T) {
	for _, zone := range []string{"Pacific/Auckland", "Pacific/Apia", "Pacific/Kiritimati", "Pacific/Pago_Pago"} {
		at, err := time.LoadLocation(zone)
		require.NoError(t, err)
		office := &calendar{zone: at, days: [7]bool{false, true, true, true, true, true, false}, from: 9 * time.Hour, to: 17 * time.Hour, holidays: map[string]bool{"2026-01-13": true}}
		monday := time.Date(2026, 1, 12, 16, 0, 0, 0, at)
		require.Equal(t, time.Date(2026, 1, 14, 10, 0, 0, 0, at).UTC(), office.add(monday, 2*time.Hour), zone)
		require.Equal(t, time.Date(2026, 1, 12, 17, 0, 0, 0, at).UTC(), office.add(monday, time.Hour), zone)
	}
}
