package setting

import (
	"encoding/json"
	"strings"
)

// Put sets a member of a JSON object by its path.
func Put(members map[string]any, path string, value any) {
	outer, name, isInner := strings.Cut(path, ".")
	if !isInner {
		members[path] = value
		return
	}
	inner, ok := members[outer].(map[string]any)
	if !ok {
		inner = map[string]any{}
		members[outer] = inner
	}
	inner[name] = value
}

// Get returns a member of a JSON object by its path; nil if it is missing.
func Get(object []byte, path string) json.RawMessage {
	outer, rest, isInner := strings.Cut(path, ".")
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return nil
	}
	if isInner {
		return Get(members[outer], rest)
	}
	return members[outer]
}
