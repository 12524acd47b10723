package demo

import (
	"context"
	"encoding/json"
	"errors"
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

// payback is a refund that the demo's agent may make. No money moves: it is
// put into the folder.
type payback struct {
	Order    string `json:"order" jsonschema:"the number of the order"`
	Customer string `json:"customer" jsonschema:"the customer's address"`
	Cents    int64  `json:"cents" jsonschema:"how much, in euro cents"`
	Reason   string `json:"reason" jsonschema:"why, in a sentence"`
}

// newOutbox returns the demo's tools that reach outside, each of which writes
// what it would do into a folder of its own.
func newOutbox(folder string) ([]agentrun.Tool, error) {
	send, err1 := tools.New(tools.Spec[email]{
		Name:        "send_email",
		Description: "Sends an email. A person has to approve it first. In this demo it is put into the folder outbox instead.",
		Approval:    tools.Always,
		Summary:     "Send an email to {args.to} about {args.subject}",
	}, func(_ context.Context, _ agentrun.Call, in email) (string, error) {
		return "Sent to " + in.To + ".", put(filepath.Join(folder, "outbox"), "email-*.json", in)
	})
	refund, err2 := tools.New(tools.Spec[payback]{
		Name:        "issue_refund",
		Description: "Refunds an order. People have to approve it first. In this demo it is put into the folder refunds instead.",
		Approval:    tools.Always,
		Summary:     `Refund {money args.cents "EUR"} to {args.customer} for order {args.order}`,
		Check: func(_ context.Context, _ agentrun.Call, in payback) error {
			if in.Cents <= 0 {
				return errors.New("cents must be more than 0")
			}
			return nil
		},
	}, func(_ context.Context, _ agentrun.Call, in payback) (string, error) {
		said := fmt.Sprintf("Refunded %d.%02d EUR of order %s.", in.Cents/100, in.Cents%100, in.Order)
		return said, put(filepath.Join(folder, "refunds"), "refund-*.json", in)
	})
	return []agentrun.Tool{send, refund}, errors.Join(err1, err2)
}

// put writes v into a new file of the folder.
func put(folder, pattern string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("write it down: %w", err)
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return fmt.Errorf("make the folder: %w", err)
	}
	f, err := os.CreateTemp(folder, pattern)
	if err != nil {
		return fmt.Errorf("write it down: %w", err)
	}
	_, err = f.Write(b)
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("write it down: %w", err)
	}
	return nil
}
