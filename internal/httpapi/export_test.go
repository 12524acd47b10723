package httpapi

// Problems returns the names of all types of problems.
func Problems() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// Routes lists the routes with their methods.
func (a *API) Routes() map[string][]string {
	out := map[string][]string{}
	for pattern, methods := range a.table() {
		for m := range methods {
			out[pattern] = append(out[pattern], m)
		}
	}
	return out
}

// Held is how many requests wait.
func (a *API) Held() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := 0
	for _, holds := range a.holds {
		n += len(holds)
	}
	return n
}
