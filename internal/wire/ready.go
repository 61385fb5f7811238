package wire

// Readiness is what has to be right before a sale.
type Readiness struct {
	State  string  `json:"state" enum:"ok,attention,failed" doc:"The worst result."`
	Checks []Check `json:"checks"`
}

// Check is one thing that was checked.
type Check struct {
	Name  string `json:"name" doc:"What was checked, such as clock or room sale."`
	State string `json:"state" enum:"ok,attention,failed" doc:"attention: a sale can run, with less than it could have; failed: visitors or the proof will suffer."`
	Text  string `json:"text" doc:"What is the case, as a sentence."`
	Do    string `json:"do" doc:"What to do; empty if the state is ok."`
}
