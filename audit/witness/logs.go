package witness

import (
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
)

// Logs maps the origin of each followed log to the keys that may sign its checkpoints. A log that
// is changing its key has both for a while.
type Logs map[string][]note.Verifier

// NewLogs returns the logs with these vkeys; the origin of a log is the name of its key. Repeated
// vkeys are ignored. The error is [audit.ErrKey].
func NewLogs(vkeys ...string) (Logs, error) {
	logs := Logs{}
	for _, vkey := range vkeys {
		v, err := audit.ParseKey(vkey)
		if err != nil {
			return nil, fmt.Errorf("key of a log %q: %w", vkey, audit.ErrKey)
		}
		same := func(o note.Verifier) bool { return o.KeyHash() == v.KeyHash() }
		if !slices.ContainsFunc(logs[v.Name()], same) {
			logs[v.Name()] = append(logs[v.Name()], v)
		}
	}
	return logs, nil
}
