package openaimodel_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/agentrun/openaimodel"
	"github.com/countersign/countersign/internal/agentrun/openaimodel/openaisim"
)

func ExampleModel_Request() {
	srv := httptest.NewServer(openaisim.New(openaisim.DemoStories()...))
	defer srv.Close()
	m, err := openaimodel.New(openaimodel.Config{
		APIKey: func() string { return "sk-any" }, BaseURL: srv.URL + "/v1", Model: "any", Now: time.Now,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	answer, err := m.Request(context.Background(), agentrun.ModelRequest{
		Messages: []agentrun.Message{agentrun.Request{Parts: []agentrun.RequestPart{
			agentrun.UserPrompt{Content: "Clean up the old reports, please."},
		}}},
		Tools: []agentrun.ToolDefinition{{Name: "list_files"}, {Name: "read_file"}, {Name: "delete_file"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range answer.Parts {
		switch p := p.(type) {
		case agentrun.Text:
			fmt.Println("says: ", p.Content)
		case agentrun.CallPart:
			fmt.Println("calls:", p.Name, string(p.Args))
		case agentrun.Thinking, agentrun.ProviderCall:
		}
	}
	// Output:
	// says:  I'll look at what reports there are.
	// calls: list_files {}
}
