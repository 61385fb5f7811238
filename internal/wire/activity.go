package wire

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/activity"
)

// Entry is one entry of the activity log.
type Entry struct {
	ID      uuid.UUID        `json:"id"`
	At      time.Time        `json:"at"`
	By      Actor            `json:"by"`
	Verb    string           `json:"verb" doc:"Operation, such as room.pause."`
	Object  string           `json:"object" doc:"Object of the operation, such as a room's slug."`
	Detail  json.RawMessage  `json:"detail" doc:"Details, depending on the verb."`
	Outcome activity.Outcome `json:"outcome" doc:"Empty: unknown, because the server stopped in between."`
}

// Actor is the person or program that an activity log entry names.
type Actor struct {
	Kind string    `json:"kind" enum:"person,token,server"`
	ID   uuid.UUID `json:"id" doc:"Zero for the server's own token."`
	Name string    `json:"name" doc:"E-mail address, or name of the token, at that time."`
}

// EntryList is a page of the activity log.
type EntryList struct {
	Entries []Entry `json:"entries"`
	Next    *string `json:"next" doc:"Cursor of the next page; null on the last page."`
}
