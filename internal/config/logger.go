package config

import (
	"io"
	"log/slog"
)

// NewLogger logs as text at the level, one line a record.
func NewLogger(w io.Writer, level string) *slog.Logger {
	return Environment{LogLevel: level}.NewLogger(w)
}

// NewLogger logs at the level and in the format of the environment, one line a
// record.
func (e Environment) NewLogger(w io.Writer) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(e.LogLevel)); err != nil {
		l = slog.LevelInfo
	}
	o := &slog.HandlerOptions{Level: l}
	if e.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}
