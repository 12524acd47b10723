package slacksim

import (
	"cmp"
	"slices"

	"github.com/countersign/countersign/internal/slacksim/blockkit"
)

// streamed is a message that the app writes bit by bit.
type streamed struct {
	state  string // streaming, stopped, or stopped_by_user
	text   string
	plan   bool
	title  string
	tasks  []object
	blocks []any
}

func (st *streamed) add(o object) {
	switch o["type"] {
	case "markdown_text":
		st.text += str(o["text"])
	case "plan_update":
		st.title = str(o["title"])
	case "blocks":
		more, _ := o["blocks"].([]any)
		st.blocks = append(slices.Clone(st.blocks), more...)
	case "task_update":
		task := object{"type": "task_card", "task_id": o["id"], "title": o["title"], "status": cmp.Or(str(o["status"]), "pending")}
		for _, name := range []string{"details", "output"} {
			if t := str(o[name]); t != "" {
				task[name] = object{"type": "rich_text", "elements": []any{object{
					"type": "rich_text_section", "elements": []any{object{"type": "text", "text": t}},
				}}}
			}
		}
		if o["sources"] != nil {
			task["sources"] = o["sources"]
		}
		at := slices.IndexFunc(st.tasks, func(t object) bool { return t["task_id"] == o["id"] })
		st.tasks = slices.Clone(st.tasks)
		if at < 0 {
			st.tasks = append(st.tasks, task)
			return
		}
		st.tasks[at] = task
	}
}

// shown are the blocks that the stream makes.
func (st *streamed) shown() []any {
	var all []any
	if st.text != "" {
		all = append(all, object{"type": "markdown", "text": st.text})
	}
	var tasks []any
	for _, t := range st.tasks {
		tasks = append(tasks, t)
	}
	if st.plan && (len(tasks) > 0 || st.title != "") {
		tasks = []any{object{"type": "plan", "title": cmp.Or(st.title, "Plan"), "tasks": append([]any{}, tasks...)}}
	}
	all = append(append(all, tasks...), st.blocks...)
	blockkit.AssignIDs(all, shortID)
	blockkit.FillIn(all)
	return all
}
