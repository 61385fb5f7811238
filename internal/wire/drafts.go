package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Draft is an unpublished room.
type Draft struct {
	ID       uuid.UUID       `json:"id"`
	Slug     string          `json:"slug" doc:"Empty if the configuration has none."`
	Title    string          `json:"title"`
	Host     string          `json:"host" doc:"Custom host to publish it under; empty: the server's own host."`
	Config   json.RawMessage `json:"config" doc:"Configuration of a room, complete or not."`
	Version  int64           `json:"version" doc:"Version number, incremented with each change."`
	Created  time.Time       `json:"created"`
	Changed  time.Time       `json:"changed"`
	By       string          `json:"changed_by"`
	Problems []DraftProblem  `json:"problems" doc:"Problems that prevent publishing it now."`
}

// DraftProblem prevents publishing a draft, or using a brand.
type DraftProblem struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// DraftList lists the drafts of an organization.
type DraftList struct {
	Drafts []Draft `json:"drafts"`
}

// DraftInput is stored as it is.
type DraftInput struct {
	Host   string          `json:"host" doc:"Custom host to publish it under; empty: the server's own host."`
	Config json.RawMessage `json:"config" need:"true" doc:"Configuration of a room, complete or not: any JSON object."`
}
