package bulk

import (
	"log/slog"
	"time"

	"github.com/countersign/countersign/internal/slackui/delivery"
	"github.com/countersign/countersign/internal/slackui/directory"
	"github.com/countersign/countersign/internal/slackui/respond"
	"github.com/countersign/countersign/internal/slackui/slackapi"
)

// Service makes sheets, shows them and takes their submissions.
type Service struct {
	Cfg        Config
	API        *slackapi.Client
	Placements *delivery.Placements
	People     *directory.Directory
	Respond    *respond.Responder
}

// A Config is what sheets are made with.
type Config struct {
	Team  string
	Desk  delivery.Desk
	Lists directory.Lists
	Tools directory.Tools
	Bulk  Bulk
	Now   func() time.Time
	Log   *slog.Logger
}
