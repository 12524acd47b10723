package approvals

// Digests returns the digests of everything that is stored beside the batch: the
// arguments, those that an edit replaced, and the contents of previews. A digest may
// occur more than once.
func (b Batch) Digests() []Digest {
	var all []Digest
	for _, a := range b.Approvals {
		all = append(all, a.Proposed, a.Call.Digest)
		for _, m := range a.Amendments {
			all = append(all, m.From, m.To)
		}
		if a.Preview.Content.Digest != (Digest{}) {
			all = append(all, a.Preview.Content.Digest)
		}
	}
	for _, c := range b.Calls {
		all = append(all, c.Call.Digest)
	}
	return all
}
