package connector

import "github.com/proofline/proofline/connector/rules"

// HasRules reports whether there are rules. If there are none, their server has not responded since
// the start, and requests get the retry page unless the default rules let them pass.
func (c *Connector) HasRules() bool { return !c.current.Load().IsEarly }

// guardWithoutRules does what guard does, while there are no rules.
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
