// Package command answers slash commands.
package command
