package openaisim_test

import (
	"context"
	"fmt"
	"net/http/httptest"

	openai "github.com/sashabaranov/go-openai"

	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

func Example() {
	sim := openaisim.New(openaisim.Story{
		Name: "greeting", Prompt: "say hello", Match: openaisim.Says("say hello"),
		Turn: func(c openaisim.Conversation) openaisim.Reply {
			greeted, ok := c.Last("greet")
			if !ok {
				return openaisim.Reply{Calls: []openaisim.Call{{Name: "greet", Args: `{"who":"all"}`}}}
			}
			return openaisim.Reply{Text: "They said: " + greeted.Text()}
		},
	})
	srv := httptest.NewServer(sim)
	defer srv.Close()

	config := openai.DefaultConfig("any key")
	config.BaseURL = srv.URL + "/v1"
	resp, err := openai.NewClientWithConfig(config).CreateChatCompletion(context.Background(), openai.ChatCompletionRequest{
		Model:    openaisim.ModelName,
		Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "<@U012AB3CD> say hello"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	call := resp.Choices[0].Message.ToolCalls[0]
	fmt.Println(resp.Model, "calls", call.Function.Name, call.Function.Arguments)
	// Output: scripted calls greet {"who":"all"}
}
