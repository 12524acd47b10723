package hookserver

// Send is how every answer of a hook is sent.
var Send = send
