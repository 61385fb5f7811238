package manage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/proofline/proofline/console/desk"
	"github.com/proofline/proofline/room"
)

// matches tells whether an If-Match header allows for a current tag. There is
// none that says nothing: callers look first.
//
// https://www.rfc-editor.org/rfc/rfc9110#section-13.1.1
func matches(header, current string) bool {
	for tag := range strings.SplitSeq(header, ",") {
		if tag = strings.TrimSpace(tag); tag == "*" || tag == current {
			return true
		}
	}
	return false
}

// isKnown tells whether a client has what a tag is of: proxies that compress
// make tags weak, and here that counts as the same.
//
// https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
func (c *call) isKnown(tag string) bool {
	header := strings.Join(c.echo.Request().Header.Values("If-None-Match"), ",")
	return header != "" && matches(strings.ReplaceAll(header, `W/"`, `"`), tag)
}

// ifMatch returns the condition of a request; false when it has none.
func (c *call) ifMatch() (string, bool) {
	values := c.echo.Request().Header.Values("If-Match")
	return strings.Join(values, ","), len(values) > 0
}

// roomTag is the ETag of a room: of what can be changed about it, not of what
// happens in it.
func roomTag(r *room.Room) string {
	text, err := json.Marshal(struct {
		Config  room.Config
		Message *room.Message
	}{r.Config(), r.Snapshot().Message(r.Now())})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`
}

func draftTag(d desk.Draft) string { return `"` + strconv.FormatInt(d.Version, 10) + `"` }
