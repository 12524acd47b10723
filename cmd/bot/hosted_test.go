package main

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
	"github.com/countersign/countersign/internal/config"
	"github.com/countersign/countersign/internal/slacksim"
	"github.com/countersign/countersign/internal/state"
)

const docsToken = "token-of-the-docs-server"

// withDocs gives the agent of the world a hosted server, whose tool ask is asked twice
// beside a deletion of ours.
func (w *world) withDocs(call func(args string) (string, error)) {
	w.t.Helper()
	old, err := os.ReadFile(w.config)
	require.NoError(w.t, err)
	w.config = write(w.t, strings.Replace(string(old), "{name: ops,",
		`{name: ops, model_api: responses, hosted_mcp: {docs: {url: "https://docs.example.com/mcp", headers: {Authorization: DOCS_AUTHORIZATION}, tools: [ask]}},`, 1))
	w.env = append(w.env, "DOCS_AUTHORIZATION=Bearer "+docsToken)
	w.model = openaisim.New(openaisim.Story{
		Name: "docs", Prompt: "look it up", Match: openaisim.Says("look it up"),
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			if len(c.Results) == 0 {
				return openaisim.Reply{Calls: []openaisim.Call{
					{Name: "docs.ask", Args: `{"q":"first"}`}, {Name: "docs.ask", Args: `{"q":"second"}`}, {Name: "delete_file", Args: `{"path":"reports/2021.txt"}`},
				}}
			}
			text := "It said:"
			for _, r := range c.Results {
				text += " " + r.Content + ";"
			}
			return openaisim.Reply{Text: text}
		},
	})
	w.model.Host("docs", "ask", call)
}

func manual(args string) (string, error) { return "page 42 of " + docsToken + " about " + args, nil }

// The batch has calls of ours and of the provider, and outlives the process. The
// provider runs what was approved, once, and reads why the other was denied.
func TestPeopleDecideAboutCallsThatTheModelProviderRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withDocs(manual)
	first := w.start()
	root := w.sim.ask("look it up", "")
	card := w.sim.await(bob, root, "the request", func(m message) bool { return len(m.buttons("first")) > 0 })
	require.Contains(t, card.words(), "The model provider runs this call, so its arguments can't be edited.")
	for _, b := range card.buttons("first") {
		require.NotContains(t, b.text, "Edit")
	}
	require.Empty(t, w.model.Hosted())
	first.kill()

	second := w.start()
	require.Empty(t, w.sim.click(bob, card, "first", "Approve").VisibleError)
	card = w.sim.await(bob, root, "the next", func(m message) bool { return len(m.buttons("second")) > 0 })
	require.Empty(t, w.sim.click(bob, card, "second", "Deny").VisibleError)
	w.sim.submit(bob, w.sim.views(bob)[0], "one page is enough")
	require.Empty(t, w.model.Hosted(), "the batch is not decided")
	card = w.sim.await(bob, root, "the last", func(m message) bool { return len(m.buttons("2021")) > 0 })
	require.Empty(t, w.sim.click(bob, card, "2021", "Approve").VisibleError)
	w.sim.await(alice, root, "the answer", says("It said: page 42 of [redacted]", "one page is enough"))
	require.Len(t, w.model.Hosted(), 1)
	require.JSONEq(t, `{"q":"first"}`, w.model.Hosted()[0].Args)
	require.NotEmpty(t, w.model.Hosted()[0].Approval)
	require.NoError(t, second.term())
	require.Equal(t, 2, requireOnce(t, first, second))
	w.sim.await(bob, root, "what became of it", says("page 42 of [redacted]"))
	for _, p := range []*process{first, second} {
		require.NotContains(t, p.out.String(), docsToken)
	}
	for _, key := range w.redis.Keys(t.Context(), "*").Val() {
		value, err := w.redis.Dump(t.Context(), key).Result()
		if errors.Is(err, redis.Nil) {
			continue // its time was over since it was listed
		}
		require.NoError(t, err)
		require.NotContains(t, value, docsToken, key)
	}
	for _, text := range w.stored(root) { // packed in Redis
		require.NotContains(t, text, docsToken)
	}
}

// stored returns the messages of a thread as they are stored, but for their packing.
func (w *world) stored(root string) []string {
	w.t.Helper()
	store, err := state.Open(w.t.Context(), state.Options{Client: w.redis})
	require.NoError(w.t, err)
	id := agentrun.ThreadIDOf(agentrun.Origin{Surface: "slack", Team: slacksim.TeamID, Channel: ops, Root: root})
	thread, err := store.Thread(w.t.Context(), id)
	require.NoError(w.t, err)
	messages, err := store.Messages(w.t.Context(), id, 0, thread.Messages)
	require.NoError(w.t, err)
	var all []string
	for _, m := range messages {
		text, err := agentrun.EncodeMessage(m)
		require.NoError(w.t, err)
		all = append(all, string(text))
	}
	require.Contains(w.t, strings.Join(all, ""), "page 42 of")
	return all
}

// The bot dies while the provider runs a call: people decide, and the approval is
// not sent again before that.
func TestPeopleDecideWhenTheBotDiesWhileTheProviderRunsACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var first *process
	running, died := make(chan struct{}), make(chan struct{})
	w.withDocs(func(args string) (string, error) {
		if first != nil {
			close(running)
			<-died
		}
		return manual(args)
	})
	p := w.start()
	root := w.sim.ask("look it up", "")
	for _, word := range []string{"second", "2021"} {
		card := w.sim.await(bob, root, word, func(m message) bool { return len(m.buttons(word)) > 0 })
		require.Empty(t, w.sim.click(bob, card, word, "Deny").VisibleError)
		w.sim.submit(bob, w.sim.views(bob)[0], "no")
	}
	first = p
	card := w.sim.await(bob, root, "the request", func(m message) bool { return len(m.buttons("first")) > 0 })
	require.Empty(t, w.sim.click(bob, card, "first", "Approve").VisibleError)
	<-running
	p.kill()
	close(died)
	first = nil
	second := w.start()
	card = w.sim.await(bob, root, "the doubt", func(m message) bool {
		return says("This call may or may not have taken effect.")(m) && len(m.buttons("")) > 0
	})
	require.Len(t, w.model.Hosted(), 1)
	require.Empty(t, w.sim.click(bob, card, "", "Give up").VisibleError)
	w.sim.submit(bob, w.sim.views(bob)[0], "nobody knows")
	w.sim.await(alice, root, "the answer", says("It said:", "It is not known whether this tool call took effect."))
	require.Len(t, w.model.Hosted(), 1, "it is not sent again")
	require.NoError(t, second.term())
}

// A provider that breaks its contract is reported in the thread and in the log, and
// nothing else of its answer is used.
func TestACallThatTheProviderRanUnaskedIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withDocs(manual)
	w.model.SkipApproval("docs.ask")
	p := w.start()
	root := w.sim.ask("look it up", "")
	w.sim.await(alice, root, "the report", says("The model provider ran docs.ask without approval."))
	p.out.await(t, `level=ERROR msg="the model provider ran a call without approval"`)
	for _, m := range w.sim.thread(bob, root) {
		require.Empty(t, m.buttons(""), "nobody is asked about the rest")
	}
	require.NoError(t, p.term())
}

// An operator finds what ran in the story of the run, once for each call, wherever the
// answer broke off.
func TestWhatTheProviderRanUnaskedIsInTheStoryOfTheRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.withDocs(manual)
	w.model.SkipApproval("docs.ask")
	p := w.start()
	for _, fault := range []openaisim.Fault{
		{}, {Kind: openaisim.Dropped, After: 9}, {Kind: openaisim.CutShort, After: 11}, {Kind: openaisim.ErrorEvent, After: 13}, {Kind: openaisim.MalformedSSE, After: 16},
	} {
		if fault.Kind != "" {
			w.model.Fail(fault)
		}
		before := len(w.model.Hosted())
		root := w.sim.ask("look it up", "")
		w.sim.await(alice, root, "the report", says("The model provider ran docs.ask without approval."))
		require.Len(t, w.model.Hosted(), before+2, "the model is not asked again")
		logged := regexp.MustCompile(`without approval" call=\S+ tool=docs.ask run=(\S+)`).FindAllStringSubmatch(p.out.String(), -1)
		run := logged[len(logged)-1][1]
		seen := 0
		for _, l := range logged {
			if l[1] == run {
				seen++
			}
		}
		story, err := w.admin("run", run)
		require.NoError(t, err)
		require.Equal(t, seen, strings.Count(story, "the model provider ran docs.ask without approval"), "%s\n%s", fault.Kind, story)
		require.NotContains(t, story, "page 42")
	}
	require.NoError(t, p.term())
}

func TestASettingOfAHostedServerThatCannotBeFailsTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ server, want string }{
		"no tools":       {`{url: "https://d.example"}`, "agents[0].hosted_mcp.docs.tools: there are none"},
		"no https":       {`{url: "http://d.example", tools: [a]}`, "agents[0].hosted_mcp.docs.url: must begin with https://"},
		"a password":     {`{url: "https://u:hunter2@d.example", tools: [a]}`, "without a password"},
		"a tool's name":  {`{url: "https://d.example", tools: ["a b"]}`, "agents[0].hosted_mcp.docs.tools[0]: tool \"a b\""},
		"a tool twice":   {`{url: "https://d.example", tools: [a, a]}`, "two tools are called docs.a"},
		"no variable":    {`{url: "https://d.example", tools: [a], headers: {Authorization: GONE}}`, "agents[0].hosted_mcp.docs.headers.Authorization: GONE is not set"},
		"the other API":  {`{url: "https://d.example", tools: [a]}`, "hosted_mcp: needs model_api: responses"},
		"the same twice": {`{url: "https://d.example", tools: [a]}`, "mcp has a server of this name too"},
	} {
		t.Run(name, func(t *testing.T) {
			more := "model_api: responses, "
			switch name {
			case "the other API":
				more = ""
			case "the same twice":
				more += `mcp: {docs: {url: "https://d.example"}}, `
			}
			path := write(t, "agents: [{name: ops, "+more+"hosted_mcp: {docs: "+c.server+"}}]\npolicy: policy.yaml\n")
			read, err := config.Read(path)
			require.NoError(t, err)
			problems := []string{}
			_, sets := config.NewToolSets(read, config.Environment{}, nil)
			for _, err := range []error{read.Check(), sets, read.HTTPSecrets(config.Environment{})} {
				for _, p := range config.Problems(err) {
					problems = append(problems, p.Error())
				}
			}
			require.Contains(t, strings.Join(problems, "\n"), c.want)
			require.NotContains(t, strings.Join(problems, "\n"), "hunter2")
		})
	}
}
