// Package form turns a JSON Schema and arguments into the inputs of a Slack form,
// and what was entered back into arguments. What is not touched keeps its bytes.
// It is pure.
package form
