package connector

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"

	"github.com/proofline/proofline/connector/rules"
)

// ReturnHeader is the header that says, in responses to scripts, how to return to the
// page that asked: the signature of its URL, or [ReturnByEnter].
const ReturnHeader = "Proofline-Return"

// ReturnByEnter is the value of [ReturnHeader] for a page without a signature of
// its own, if the room requires one: visitors return via [EnterPath].
const ReturnByEnter = "enter"

const (
	returnLabel = "proofline-to/v1\n"
	returnSize  = 16 // bytes of a truncated signature
)

// returnKey is shared by a room and its connectors, and signs the URLs to which
// visitors may return with a pass.
type returnKey [32]byte

// parseReturnKey parses a key from the reply to a report.
func parseReturnKey(text string) (returnKey, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	// The decoder skips line breaks, so that the length must be checked, too.
	isExact := len(text) == base64.RawURLEncoding.EncodedLen(len(b))
	if err != nil || len(b) != len(returnKey{}) || !isExact {
		return returnKey{}, false
	}
	return returnKey(b), true
}

// sign returns the signature of a URL for a room.
func (k *returnKey) sign(room, to string) string {
	mac := hmac.New(sha256.New, k[:])
	_, _ = mac.Write([]byte(returnLabel + room + "\n" + to)) // never fails
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:returnSize])
}

// returnSigning is what the server says about return URLs of a room.
type returnSigning struct {
	key        returnKey
	isRequired bool // the room ignores unsigned return URLs
}

// returnTarget is a URL to return to.
type returnTarget struct {
	to  string // empty: the room's first target
	sig string // empty: unsigned
}

// join returns the URL of the room, with the return URL.
func (w returnTarget) join(rm *room) string {
	join := rm.URL
	if w.to != "" {
		join += "?to=" + url.QueryEscape(w.to)
	}
	if w.sig != "" {
		join += "&to_sig=" + w.sig
	}
	return join
}

// returnTarget returns how to come back from the room to a URL of this host. URLs
// that wait for the room take a pass and are signed. Others go through [EnterPath]
// if the room requires signatures.
func (q *requestCheck) returnTarget(rm *room, to string) returnTarget {
	said := rm.state.returns.Load()
	switch {
	case said == nil || to == "":
		return returnTarget{to, ""}
	case q.isQueuedFor(rm, to):
		return returnTarget{to, said.key.sign(rm.URL, to)}
	case said.isRequired && q.hasEnter():
		return q.returnByEnter(rm, to)
	case said.isRequired && len(q.config.site.Hosts) == 0:
		q.warnUnsigned(rm)
	}
	return returnTarget{to, ""}
}

// isQueuedFor reports whether the rules send visitors of a URL to the room. They
// must name hosts: anyone can send us a request with another Host.
func (q *requestCheck) isQueuedFor(rm *room, to string) bool {
	if len(q.config.site.Hosts) == 0 {
		return false
	}
	visit := &rules.Request{Method: http.MethodGet, Host: q.host, Target: to, Header: q.r.Header, Client: q.client}
	got := q.config.site.Decide(visit, q.now)
	return got.Outcome == rules.Queue && q.config.rooms[got.Room].URL == rm.URL
}

// ownOrigin returns the origin of this host.
func (q *requestCheck) ownOrigin() string { return q.scheme + "://" + q.host }

// hasEnter reports whether [EnterPath] accepts pages of this host.
func (q *requestCheck) hasEnter() bool {
	_, ok := q.sitePage(q.ownOrigin())
	return ok
}

// returnByEnter returns the way back to a page of the site via [EnterPath], which
// redeems the pass and removes it from the URL.
func (q *requestCheck) returnByEnter(rm *room, page string) returnTarget {
	w := returnTarget{to: q.ownOrigin() + EnterPath + "?to=" + url.QueryEscape(page)}
	if said := rm.state.returns.Load(); said != nil && q.hasEnter() {
		w.sig = said.key.sign(rm.URL, w.to)
	}
	return w
}

// returnHeader returns the [ReturnHeader] for the page of a script; empty: no header.
func (q *requestCheck) returnHeader(rm *room, w returnTarget, page string) string {
	said := rm.state.returns.Load()
	switch {
	case w.sig != "" && w.to == page:
		return w.sig
	case said != nil && said.isRequired && q.hasEnter():
		return ReturnByEnter
	}
	return ""
}

// waitAndEnter redirects a visitor to a room, and back via [EnterPath], for a
// script that knows the room's URL.
func (q *requestCheck) waitAndEnter(room, page string) {
	rm, ok := q.config.byURL[room]
	switch {
	case !ok:
		http.Error(q.w, "room must be the URL of a room in the rules", http.StatusNotFound)
	case rm.Mode == rules.Closed:
		q.refuseClosed(rm)
	default:
		q.counts.queued.Add(1)
		q.w.Header().Set("Location", q.returnByEnter(rm, page).join(rm))
		q.w.WriteHeader(http.StatusSeeOther)
	}
}
