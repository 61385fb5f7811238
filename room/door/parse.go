package door

import (
	"encoding/json"
	"fmt"

	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/jsontext"
)

// Written is a credential in JSON, with nullifier and evidence in lower-case hex.
type Written struct {
	Method    string `json:"method"`
	Nullifier string `json:"nullifier,omitempty"` // empty where the kind has none
	Evidence  string `json:"evidence"`
}

const (
	field    = "credentials"
	wantEach = "must be the name of a method, evidence of 1 to 512 bytes in lower-case hex, " +
		"and a nullifier of 32 bytes or none"
)

var wantList = fmt.Sprintf(`must be a list of at most %d {"method": text, "nullifier": text, "evidence": text}`,
	fairness.MaxMethods)

// listForm has no member twice: programs disagree about which one counts.
var listForm = jsontext.Form{Depth: 2, Items: fairness.MaxMethods, Name: func(_ []string, name string) string {
	if IsMember(name) {
		return ""
	}
	return "is unknown"
}}

// IsMember reports whether a name is that of a member of [Written].
func IsMember(name string) bool { return name == "method" || name == "nullifier" || name == "evidence" }

// ParseList reads a JSON list of credentials as [Written]. The error is a [*MalformedError].
func ParseList(text []byte) ([]credential.Credential, error) {
	var items []Written
	if wrong := listForm.Check(text); wrong != nil || json.Unmarshal(text, &items) != nil {
		return nil, Malformed(field, wantList)
	}
	return Parse(items)
}

// Parse returns the credentials, or a [*MalformedError].
func Parse(items []Written) ([]credential.Credential, error) {
	if len(items) > fairness.MaxMethods {
		return nil, Malformed(field, fmt.Sprintf("must be at most %d", fairness.MaxMethods))
	}
	var problems invalid.List
	list := make([]credential.Credential, len(items))
	for i, w := range items {
		var err error
		if list[i], err = w.Parse(); err != nil {
			problems.Add(fmt.Sprintf("%s[%d]", field, i), wantEach)
		}
	}
	if err := problems.Err(); err != nil {
		return nil, &MalformedError{err}
	}
	return list, nil
}

// Parse returns the credential, or a [*MalformedError].
func (w Written) Parse() (credential.Credential, error) {
	nullifier := w.Nullifier
	if nullifier == "" {
		nullifier = "-"
	}
	c, err := credential.Parse([]byte(w.Method), []byte(nullifier), []byte(w.Evidence))
	if err != nil || w.Nullifier == "-" {
		return c, Malformed("", wantEach)
	}
	return c, nil
}

// Write returns a credential for JSON.
func Write(c credential.Credential) Written {
	return Written{c.Method, fmt.Sprintf("%x", c.Nullifier), fmt.Sprintf("%x", c.Evidence)}
}
