package connector

import (
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/proofline/proofline/connector/rules"
)

// earlyAgain is how often a URL is asked for rules while there never were any.
const earlyInterval = time.Second

// errAway is returned when nobody answers who may have rules.
var errNoResponse = errors.New("the server of the rules does not answer")

// earlyRules are in force while there never were rules, for their server was
// away from the start: nobody knows what waits. What the shipped rules let pass
// at addresses of its own passes, such as health checks and webhooks of payment
// providers; the rest is blocked, which stands for held.
var earlyRules = sync.OnceValue(func() *loadedRules {
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
		panic(err) // it is part of the program
	}
	site, err := rules.Parse(text)
	if err != nil {
		panic(err) // likewise
	}
	return &loadedRules{site: site, isEarly: true}
})

// HasRules tells whether there are rules. False: their server has not answered
// since the connector began, and everybody is held whom the shipped rules do not
// let pass.
func (c *Connector) HasRules() bool { return !c.current.Load().isEarly }

// early answers while there never were rules.
func (q *requestCheck) guardWithoutRules() *admittedRequest {
	if isOwn(q.r) {
		if q.r.URL.Path == ScriptPath {
			q.serveOwn()
			return nil
		}
		return q.retryLater()
	}
	q.decision = q.decide()
	switch {
	case q.decision.Outcome == rules.Bypass:
		q.counts.bypassed.Add(1)
		return &admittedRequest{request: withoutClaims(q.r)}
	case q.decision.Rule == rules.Malformed:
		return q.block()
	}
	return q.retryLater()
}
