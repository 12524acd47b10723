package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/countersign/countersign/internal/agentrun"
	"github.com/countersign/countersign/internal/tools"
)

// email is what the demo's agent may send. Nothing leaves the machine: it is
// put into the folder.
type email struct {
	To      string `json:"to" jsonschema:"who gets it"`
	Subject string `json:"subject"`
	Body    string `json:"body"`
}

func newOutbox(folder string) ([]agentrun.Tool, error) {
	send, err := tools.New(tools.Spec[email]{
		Name:        "send_email",
		Description: "Sends an email. A person signs it first. In this demo it is put into the folder outbox instead.",
		Approval:    tools.Always,
	}, func(_ context.Context, c agentrun.Call, in email) (string, error) {
		b, err := json.MarshalIndent(in, "", "  ")
		if err != nil {
			return "", fmt.Errorf("write the email: %w", err)
		}
		dir := filepath.Join(folder, "outbox")
		if err := os.MkdirAll(dir, 0o750); err != nil {
			return "", fmt.Errorf("make the outbox: %w", err)
		}
		f, err := os.CreateTemp(dir, "email-*.json")
		if err != nil {
			return "", fmt.Errorf("write the email: %w", err)
		}
		_, err = f.Write(b)
		if closing := f.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return "", fmt.Errorf("write the email: %w", err)
		}
		return "Sent to " + in.To + ".", nil
	})
	return []agentrun.Tool{send}, err
}
