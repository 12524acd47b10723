package demo

import (
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

// prepareFolder makes the folder that the agent may work on. It takes no folder
// that has something in it, which may be someone's own.
func (d *demo) prepareFolder(folder string) error {
	if folder == "" {
		dir, err := os.MkdirTemp("", "countersign-demo-")
		if err != nil {
			return fmt.Errorf("make the demo's folder: %w", err)
		}
		d.undo = append(d.undo, func() error { return os.RemoveAll(dir) })
		folder = dir
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("--folder: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("--folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("--folder: %s is not empty: it has %s. "+
			"The demo writes files of its own into the folder, so name one that is empty or not there yet", folder, entries[0].Name())
	}
	d.folder = folder
	return Seed(folder)
}

// Seed writes the demo's files into the folder, and overwrites nothing there.
func Seed(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return fmt.Errorf("open the demo's folder: %w", err)
	}
	for name, text := range files {
		err = errors.Join(err, writeInto(root, name, text))
	}
	if err := errors.Join(err, root.Close()); err != nil {
		return fmt.Errorf("write the demo's files: %w", err)
	}
	return nil
}

// writeInto makes a file of that name, of which there must be none.
func writeInto(root *os.Root, name, text string) error {
	if err := root.MkdirAll(path.Dir(name), 0o750); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

var files = map[string]string{
	"reports/2023-q1-sales.txt": "Sales, first quarter of 2023\n\nNorth   41,200\nSouth   38,900\nTotal   80,100\n",
	"reports/2023-q2-sales.txt": "Sales, second quarter of 2023\n\nNorth   44,700\nSouth   40,300\nTotal   85,000\n\nLegal hold: keep until the audit of 2023 is closed.\n",
	"reports/2026-q1-sales.txt": "Sales, first quarter of 2026\n\nNorth   61,800\nSouth   57,400\nTotal  119,200\n",
}

// Stories are those that the demo has the tools for.
func Stories() []openaisim.Story {
	var stories []openaisim.Story
	for _, s := range openaisim.DemoStories() {
		if s.Name != "export" {
			stories = append(stories, s)
		}
	}
	return stories
}

// people are those of every simulated workspace, and someone who looks
// after the money.
func people() []slacksim.Person {
	return append(slacksim.DefaultPeople(), slacksim.Person{
		ID: "U0FRANK", Name: "frank", RealName: "Frank Fischer", Email: "frank@acme.example", TZ: "Europe/Berlin", TZOffset: 3600,
	})
}

func channels() []slacksim.Channel {
	channels := slacksim.DefaultChannels()
	for i := range channels {
		channels[i].Members = append(channels[i].Members, "U0FRANK")
	}
	return channels
}

func groups() []slacksim.Group {
	return append(slacksim.DefaultGroups(), slacksim.Group{ID: "S0FIN", Handle: "finance", Name: "Finance", Users: []string{"U0FRANK"}})
}

// Policy is the text of the demo's policy.
//
//go:embed policy.yaml
var Policy string

// preparePolicy writes the demo's policy into a file of its own, which the
// agent cannot reach and a visitor may edit.
func (d *demo) preparePolicy() error {
	dir, err := os.MkdirTemp("", "countersign-policy-")
	if err != nil {
		return fmt.Errorf("make a folder for the demo's policy: %w", err)
	}
	d.undo = append(d.undo, func() error { return os.RemoveAll(dir) })
	d.policy = filepath.Join(dir, "policy.yaml")
	if err := os.WriteFile(d.policy, []byte(Policy), 0o600); err != nil {
		return fmt.Errorf("write the demo's policy: %w", err)
	}
	return nil
}

// configuration is the configuration of the demo, in which a change of the policy
// is seen at once.
func configuration(folder, policy string) config.Config {
	return config.Config{
		Agents: []config.Agent{{
			Name: "ops", Files: folder,
			Instructions: "You help the operations team with the files of one folder. Look before you act, and say truthfully what happened.",
		}},
		Policy: policy, Reload: time.Second,
		Redis: config.Redis{Durability: state.None}, // a Redis in memory keeps nothing, and the demo says so
	}
}

func addedTools(folder string) config.ToolsFor {
	return func(string) ([]agentrun.Tool, error) { return newOutbox(folder) }
}
