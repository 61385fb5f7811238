package account

import (
	"strconv"
	"strings"
	"time"
)

// browsers marks browsers as known for an address, and recognizes them.
type browsers struct {
	sealer *sealer
	random random
	now    func() time.Time
}

// remember returns the value that marks a browser as known for an address. It is random, so that
// each browser has its own count
// (https://owasp.org/www-community/Slow_Down_Online_Guessing_Attacks_with_Device_Cookies).
func (b *browsers) remember(email string) (string, error) {
	id, err := b.random.id()
	if err != nil {
		return "", err
	}
	until := strconv.FormatInt(b.now().Add(KnownLife).Unix(), 10)
	return b.sealer.sealText(sealKnown, email+" "+id.String()+" "+until), nil
}

// limitKey returns the key that counts attempts for an address: the browser if it is known for that
// address, otherwise the address.
func (b *browsers) limitKey(email string, c Client) string {
	text, err := b.sealer.openText(sealKnown, c.Known)
	fields := strings.Fields(text)
	if err != nil || len(fields) != 3 || fields[0] != email {
		return email
	}
	if until, err := strconv.ParseInt(fields[2], 10, 64); err != nil || b.now().Unix() > until {
		return email
	}
	return email + " " + fields[1]
}
