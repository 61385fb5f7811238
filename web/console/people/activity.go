package people

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/activity"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/web/console/format"
	"github.com/proofline/proofline/web/console/shell"
)

// activityLog serves the activity log.
type activityLog struct {
	log ActivityLog
}

func (h *activityLog) routes() []shell.Route {
	return []shell.Route{shell.Get("/activity", account.Read, h.list)}
}

// activityView is an entry of the activity log in a list.
type activityView struct {
	At      time.Time
	Actor   string
	Kind    string
	Words   string
	Object  string
	IsRoom  bool
	Site    string // name of the site that the entry is about; empty: not about a site
	Details []string
	Outcome string // outcome in words; empty: success
}

// verbWords describes the verbs of the activity log.
var verbWords = map[string]string{
	"room.create":          "published the room",
	"room.amend":           "changed the room",
	"room.pause":           "paused calls",
	"room.freeze-claims":   "froze claims",
	"room.resume":          "resumed",
	"room.end":             "ended the room",
	"room.report":          "audited the room and published the report",
	"room.revoke":          "revoked a place",
	"room.revoke-list":     "revoked a list of places",
	"room.restore-list":    "gave a list of revoked places back",
	"room.tell":            "stated something in a transcript",
	"room.restore-ticket":  "gave a revoked place back",
	"room.rotate-keys":     "rotated the key for passes",
	"room.codes":           "made codes for visitors",
	"room.void_codes":      "voided codes for visitors",
	"room.members":         "replaced the members of a method",
	"room.calls":           "changed who calls visitors",
	"room.queue-it":        "changed the tokens for Queue-it connectors",
	"room.archive":         "archived the room",
	"room.unarchive":       "restored the room from the archive",
	"alerts.changed":       "changed the alerts",
	"alerts.tested":        "tested the alerts",
	"host.add":             "added a host",
	"host.remove":          "removed a host",
	"host.verify":          "verified a host",
	"identity.add":         "got an account through OpenID Connect",
	"member.invite":        "invited a member",
	"member.join":          "joined",
	"member.remove":        "removed a member",
	"member.role":          "changed a role",
	"member.uninvite":      "withdrew an invitation",
	"organization.change":  "changed the organization",
	"organization.quota":   "changed what the organization may use",
	"organization.create":  "created an organization",
	"owner.link":           "created a link for an owner",
	"password.change":      "changed their password",
	"sign-in":              "signed in",
	"sign-in.link":         "got a link to sign in despite failed attempts",
	"sign-in.refused":      "failed to sign in several times",
	"recovery-codes.make":  "created new recovery codes",
	"second-factor.enable": "set up a second factor",
	"second-factor.remove": "removed the second factor",
	"token.make":           "created a token",
	"token.revoke":         "revoked a token",
	"site.create":          "created a site",
	"site.update":          "changed the rules of a site",
	"site.restore":         "restored earlier rules of a site",
	"site.delete":          "deleted a site",
	"webhook.changed":      "changed a webhook",
	"webhook.created":      "created a webhook",
	"webhook.deleted":      "deleted a webhook",
	"webhook.redelivered":  "repeated a delivery",
	"webhook.rotated":      "rotated the secret of a webhook",
	"webhook.tested":       "tested a webhook",
	"draft.create":         "created a draft",
	"draft.delete":         "deleted a draft",
	"rehearsal.start":      "started a rehearsal",
	"rehearsal.stop":       "stopped a rehearsal",
}

var outcomeWords = map[activity.Outcome]string{
	activity.Refused: "was refused", activity.Failed: "failed",
	"": "unknown: the server stopped before it could record the outcome",
}

// list shows the activity log, of the organization or of one object.
func (h *activityLog) list(x *shell.Request) error {
	before := uuid.Nil
	if text := x.QueryParam("before"); text != "" {
		var err error
		if before, err = uuid.Parse(text); err != nil {
			return invalid.Field("before", "must be from a link of this list")
		}
	}
	object := x.QueryParam("object")
	page, err := h.log.Entries(x.Request().Context(), x.Actor, object, before, 0)
	if err != nil {
		return err
	}
	v := struct {
		Object string
		List   []activityView
		Next   string
		Days   int // for which entries are kept; 0: forever
	}{Object: object, Days: int(page.Kept / (24 * time.Hour))}
	for _, a := range page.Entries {
		v.List = append(v.List, newActivityView(a))
	}
	if page.Next != uuid.Nil {
		v.Next = page.Next.String()
	}
	return x.Page("activity", v)
}

func newActivityView(a activity.Entry) activityView {
	v := activityView{At: a.At, Actor: a.Actor, Kind: a.ActorKind, Words: verbWords[a.Verb], Object: a.Object,
		IsRoom: isAboutRoom(a), Outcome: outcomeWords[a.Outcome]}
	if name, ok := strings.CutPrefix(a.Object, "site/"); ok {
		v.Site = name
	}
	if v.Words == "" {
		v.Words = strings.ReplaceAll(a.Verb, ".", " ")
	}
	detail := map[string]any{}
	_ = json.Unmarshal(a.Detail, &detail) // written by package control
	for _, name := range slices.Sorted(maps.Keys(detail)) {
		if text := detailWords(name, detail[name]); text != "" {
			v.Details = append(v.Details, text)
		}
	}
	return v
}

// isAboutRoom reports whether an entry is about a room with a page: the object of a draft is an id,
// and a room that could not be created may have no slug.
func isAboutRoom(a activity.Entry) bool {
	if kind, _, _ := strings.Cut(a.Verb, "."); kind != "room" && kind != "rehearsal" {
		return false
	}
	return a.Object != "" && uuid.Validate(a.Object) != nil
}

// messageDetail describes a message to visitors, default language first.
func messageDetail(value map[string]any) string {
	var m room.Message
	text, _ := json.Marshal(value)
	_ = json.Unmarshal(text, &m) // written by package control
	var parts []string
	for _, tag := range m.Tags() {
		parts = append(parts, fmt.Sprintf("%s: %s", format.Language(tag), m.Texts[tag]))
	}
	if m.Until != nil {
		parts = append(parts, "until "+format.Moment(m.Until.UTC())+" UTC")
	}
	return "message: " + strings.Join(parts, "; ")
}

// detailWords describes a detail, or returns "" if it says nothing.
func detailWords(name string, value any) string {
	label := strings.ReplaceAll(name, "_", " ")
	switch value := value.(type) {
	case nil:
		if name == "message" {
			return "message removed"
		}
		return ""
	case map[string]any:
		if name == "message" {
			return messageDetail(value)
		}
	case string:
		if value == "" {
			return ""
		}
		return label + ": " + format.MomentLine(value)
	case bool:
		if !value {
			return ""
		}
		return label
	case float64:
		if name == "size" {
			return fmt.Sprintf("after entry %s of the transcript", format.Number(int64(value)-1))
		}
		return label + ": " + format.Number(int64(value))
	case []any:
		if len(value) == 2 && (name == "per_minute" || name == "max_active") {
			return fmt.Sprintf("%s: %v to %v", label, value[0], value[1])
		}
		if name == "windows" {
			return windowWords(value)
		}
	}
	text, _ := json.Marshal(value) // no error: the value was read from JSON
	return label + ": " + string(text)
}

// windowWords describes the windows.
func windowWords(rules []any) string {
	var words []string
	for _, rule := range rules {
		w, ok := rule.(map[string]any)
		from, known := w["from"].(string)
		length, _ := w["length"].(string)
		if !ok || !known {
			continue
		}
		if d, ok := format.ReadLength(length); ok {
			length = format.Duration(d)
		}
		words = append(words, fmt.Sprintf("%s each from %s", length, format.MomentLine(from)))
	}
	return "windows: " + strings.Join(words, ", ")
}
