// Package form turns a JSON Schema and arguments into the inputs of a Slack form,
// and a submitted form back into arguments. Values that nobody changed keep their
// bytes. It is pure.
package form
