package rules

import (
	_ "embed" // for the list
	"encoding/json"
	"sync"
)

// defaultsJSON is the list that "defaults": "on" stands for in version 1 of the
// format. It does not change: another list comes with another version.
//
//go:embed defaults.json
var defaultsJSON []byte

// Defaults returns the shipped rules: what no site lets wait.
func Defaults() []Rule {
	var list []Rule
	if err := json.Unmarshal(defaultsJSON, &list); err != nil {
		panic(err) // it is part of the program
	}
	return list
}

// defaults returns the shipped rules as they are looked at.
var defaults = sync.OnceValue(func() []compiled {
	c := checker{site: &Site{}}
	var list []compiled
	for _, r := range Defaults() {
		list = append(list, c.compile(r.Name, r))
	}
	if len(c.problems) > 0 {
		panic(c.problems) // they are part of the program
	}
	return list
})
