package approvals

// RequestOf is the id under which a decision is remembered.
func RequestOf(r RequestID, c Decide) RequestID { return c.request(r) }
