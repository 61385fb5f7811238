package manage

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/room"
)

// matches reports whether an If-Match header includes the current tag. Callers first check that the
// request has the header.
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

// isKnown reports whether the client already has the version with this tag. Weak tags count as equal,
// because proxies that compress make tags weak.
//
// https://www.rfc-editor.org/rfc/rfc9110#section-13.1.2
func (c *call) isKnown(tag string) bool {
	header := strings.Join(c.echo.Request().Header.Values("If-None-Match"), ",")
	return header != "" && matches(strings.ReplaceAll(header, `W/"`, `"`), tag)
}

// ifMatch returns the If-Match header; false if there is none.
func (c *call) ifMatch() (string, bool) {
	values := c.echo.Request().Header.Values("If-Match")
	return strings.Join(values, ","), len(values) > 0
}

// roomTag returns the ETag of a room. It covers what can be changed about the room, not its progress.
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

func draftTag(d control.Draft) string { return `"` + strconv.FormatInt(d.Version, 10) + `"` }
