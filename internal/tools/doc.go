// Package tools makes tools for agents out of Go functions.
//
// A tool is a struct for its arguments and a function that takes it. [New]
// derives the JSON Schema that the model is given from the struct, and judges
// every call against that same schema before anybody is asked to approve it:
//
//	type deleteFile struct {
//		Path string `json:"path" jsonschema:"the file to delete, relative to the folder"`
//	}
//
//	t, err := tools.New(tools.Spec[deleteFile]{
//		Name:        "delete_file",
//		Description: "Deletes one file for good.",
//		Approval:    tools.Always,
//		Summary:     "Delete {args.path}",
//	}, func(ctx context.Context, c agentrun.Call, in deleteFile) (string, error) { ... })
//
// Nothing is coerced and no default is filled in: the bytes that the model
// wrote are validated, shown, approved and decoded. A field that people must not
// read carries the tag `countersign:"writeOnly"` and is shown as a length. What
// is wrong with arguments the model reads as a sentence, and a person who edits
// them as an [agentrun.ArgumentError] for each.
//
// Summary says what a call does in one line, for people; [New] compares it with
// the derived schema. The form is that of package summary. A policy and the
// configuration may put another in its place.
//
// A tool may say what a call would change before anybody is asked ([Spec].Preview):
// facts for everybody who sees the call, content for those who may read its
// arguments, and a precondition, which must still hold when the call runs. The
// model chose the arguments, so the tool names the call of a reading tool that
// the preview amounts to, and there is none where that call needs approval. Only
// tools made here have previews; those of an MCP server have none.
//
// Beneath it is [agentrun.Tool], for tools whose schema is not known in Go.
package tools
