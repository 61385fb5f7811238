package source

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// earlyInterval is the polling interval while no rules have been received.
const earlyInterval = time.Second

// errNoResponse is returned when the rules' server does not respond.
var errNoResponse = errors.New("the rules' server does not respond")

// earlyRules are in force until the first rules arrive, if their server does not respond at the
// start. Default rules for specific paths, such as health checks and webhooks of payment providers,
// let requests pass; the rest is answered with the retry page.
var earlyRules = sync.OnceValue(func() *Rules {
	var s struct {
		Version  int          `json:"version"`
		Defaults string       `json:"defaults"`
		Rules    []rules.Rule `json:"rules"`
	}
	s.Version, s.Defaults = 1, "off"
	for _, r := range rules.Defaults() {
		if !r.IsWide() {
			r.Name = strings.TrimPrefix(r.Name, "default:")
			s.Rules = append(s.Rules, r)
		}
	}
	s.Rules = append(s.Rules, rules.Rule{Name: "others", Action: "block"})
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // the rules are built into the program
	}
	site, err := rules.Parse(text)
	if err != nil {
		panic(err) // the rules are built into the program
	}
	return &Rules{Site: site, IsEarly: true}
})
