package rules

import (
	_ "embed" // embeds the list
	"encoding/json"
	"sync"
)

// defaultsJSON is the list of rules that "defaults": "on" enables in version 1 of the format. It
// never changes: another list requires another version.
//
//go:embed defaults.json
var defaultsJSON []byte

// Defaults returns the default rules: requests that never wait at any site.
func Defaults() []Rule {
	var list []Rule
	if err := json.Unmarshal(defaultsJSON, &list); err != nil {
		panic(err) // embedded, so always valid
	}
	return list
}

// defaults returns the compiled default rules.
var defaults = sync.OnceValue(func() []compiled {
	c := checker{site: &Site{}}
	var list []compiled
	for _, r := range Defaults() {
		list = append(list, c.compile(r.Name, r))
	}
	if len(c.problems) > 0 {
		panic(c.problems) // embedded, so always valid
	}
	return list
})
