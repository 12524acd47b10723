package filetool

import "testing"

// Meanwhile has f called between the steps in which an entry is looked at,
// opened and compared, until the test ends.
func Meanwhile(t *testing.T, f func(at string)) {
	t.Helper()
	before := meanwhile
	meanwhile = f
	t.Cleanup(func() { meanwhile = before })
}
