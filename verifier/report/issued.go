package report

import (
	"fmt"
	"time"

	"github.com/proofline/proofline/verifier/numeral"
)

// Issued compares the signed count of an issuer with the transcript.
type Issued struct {
	By       string `json:"by"` // name under which the count is signed
	Method   string `json:"method"`
	Accounts uint64 `json:"accounts"` // that have a credential, as the issuer counts
	Shown    uint64 `json:"shown"`    // tickets that showed one
	Millis   int64  `json:"time"`     // of the count, by the issuer's clock, since the Unix epoch
}

// Contradicts reports whether more tickets showed the method than accounts have a credential. The count must have
// been read after the transcript.
func (i Issued) Contradicts() bool { return i.Shown > i.Accounts }

// Text says what the comparison shows.
func (i Issued) Text() string {
	accounts := "no account"
	if i.Accounts > 0 {
		accounts = numeral.Count(i.Accounts, "account", "accounts")
	}
	counted := fmt.Sprintf("%s has signed at %s that %s had got a credential for %s, and %s showed one.", i.By,
		time.UnixMilli(i.Millis).UTC().Format("2006-01-02 15:04:05 UTC"), accounts, i.Method,
		numeral.Count(i.Shown, "ticket", "tickets"))
	if i.Contradicts() {
		return counted + " So the issuer signs more than it counts, or somebody else has its key. The issuer can find the tickets " +
			"that it has not vouched for: proofline issuer check."
	}
	return counted + " The count is its word, too: it does not show that these accounts belong to different people."
}
