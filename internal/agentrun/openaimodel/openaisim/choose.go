package openaisim

import (
	"slices"
	"strings"
)

// reply returns what the script says to a request.
func (s *Server) reply(r chatRequest) Reply {
	story, c, found := s.choose(r)
	if !found {
		return Reply{Text: s.unknownPrompt()}
	}
	reply := story.Turn(c)
	reply.Calls = slices.Clone(reply.Calls)
	if r.ParallelToolCalls != nil && !*r.ParallelToolCalls && len(reply.Calls) > 1 {
		reply.Calls = reply.Calls[:1]
	}
	return reply
}

// choose finds the newest user message that some story matches. It looks no
// further back than the model's last final answer, which ended what came
// before it.
func (s *Server) choose(r chatRequest) (Story, Conversation, bool) {
	for i, m := range slices.Backward(r.Messages) {
		if m.Role == "assistant" && len(m.ToolCalls) == 0 {
			break
		}
		if m.Role != "user" {
			continue
		}
		text := m.text()
		if story, ok := s.match(text); ok {
			return story, converse(text, r.Messages[i+1:], r.callable()), true
		}
	}
	return Story{}, Conversation{}, false
}

func (s *Server) match(text string) (Story, bool) {
	tries := strings.Split(text, "\n")
	slices.Reverse(tries)
	for _, try := range append(tries, text) {
		for _, story := range s.stories {
			if story.Match(try) {
				return story, true
			}
		}
	}
	return Story{}, false
}

// converse expects messages that passed checkMessages.
func converse(user string, messages []message, tools []string) Conversation {
	c := Conversation{User: user, Tools: tools}
	group := 0 // where the results of the latest answer begin
	for _, m := range messages {
		switch m.Role {
		case "assistant":
			c.Replies++
			group = len(c.Results)
			for _, call := range m.ToolCalls {
				c.Results = append(c.Results, Result{
					ID: call.ID, Name: call.Function.Name, Args: *call.Function.Arguments,
				})
			}
		case "tool":
			for i := group; i < len(c.Results); i++ {
				if c.Results[i].ID == m.ToolCallID {
					c.Results[i].Content = m.text()
				}
			}
		}
	}
	return c
}

func (s *Server) unknownPrompt() string {
	var b strings.Builder
	b.WriteString("This is a scripted model, not a real one, and it has no script for that.")
	if len(s.stories) == 0 {
		return b.String()
	}
	b.WriteString(" It understands:\n")
	for _, story := range s.stories {
		b.WriteString("\n- " + story.Prompt)
	}
	return b.String()
}
