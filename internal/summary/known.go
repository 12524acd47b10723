package summary

// known are templates for the tools of coding agents, whose schemas never come
// here. What does not fit a call gives way to the default.
var known = map[string]string{
	"Bash":              "Run {args.command}",
	"Shell":             "Run {args.command}",
	"run_shell_command": "Run {args.command}",
	"runInTerminal":     "Run {args.command}",
	"Read":              "Read {args.file_path}",
	"Write":             "Write {args.file_path} ({bytes args.content})",
	"Edit":              "Edit {args.file_path}",
	"NotebookEdit":      "Edit {args.notebook_path}",
	"WebFetch":          "Fetch {args.url}",
	"WebSearch":         "Search the web for {args.query}",
}

// Known returns the template of a tool that coding agents bring, by its name, or
// nothing.
func Known(tool string) string { return known[tool] }
