package httpapi

// Problems returns the names of all types of problems.
func Problems() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}
