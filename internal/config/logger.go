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
	o := &slog.HandlerOptions{Level: l, ReplaceAttr: legible}
	if e.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, o))
	}
	return slog.New(slog.NewTextHandler(w, o))
}

// legible writes durations as text with a unit, "1.2s", which JSON would have as a
// number of nanoseconds.
func legible(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}
