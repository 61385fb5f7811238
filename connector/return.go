package connector

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"net/url"

	"github.com/proofline/proofline/connector/rules"
)

// ReturnHeader is of answers to scripts: how the page that asked may be the one to
// come back to. It is the signature of its URL, or [ReturnByEnter].
const ReturnHeader = "Proofline-Return"

// ReturnByEnter is the [ReturnHeader] of pages that are not protected, where the
// room wants signatures: they are come back to by [EnterPath].
const ReturnByEnter = "enter"

const (
	returnLabel = "proofline-to/v1\n"
	returnSize  = 16 // bytes of a signature
)

// returnKey is what a room and its connectors share: it signs where visitors may
// come back to with a pass.
type returnKey [32]byte

// parseReturnKey reads a key as answers to reports have it.
func parseReturnKey(text string) (returnKey, bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != len(returnKey{}) || len(text) != base64.RawURLEncoding.EncodedLen(len(b)) { // the decoder skips line breaks
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

// returns is what the server says about ways back from a room.
type returnSigning struct {
	key        returnKey
	isRequired bool // the room leads nobody to what is not signed
}

// wayBack is where a visitor comes back to.
type returnTarget struct {
	to  string // empty: to the room's first target
	sig string // empty: there is none
}

// join returns the link that leads a visitor to a room, and back.
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

// wayBack returns the way back from a room to a URL of this host. It is signed
// where a pass is taken: at URLs that lead to this very room, and by
// [EnterPath], which the others go by if the room wants signatures.
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

// leadsTo tells whether who opens a URL is led to the room by the rules, which
// name its host: anybody can ask us for a page of any other.
func (q *requestCheck) isQueuedFor(rm *room, to string) bool {
	if len(q.config.site.Hosts) == 0 {
		return false
	}
	got := q.config.site.Decide(&rules.Request{Method: http.MethodGet, Host: q.host, Target: to, Header: q.r.Header, Client: q.client}, q.now)
	return got.Outcome == rules.Queue && q.config.rooms[got.Room].URL == rm.URL
}

// here is the address of this host.
func (q *requestCheck) ownOrigin() string { return q.scheme + "://" + q.host }

// hasEnter tells whether [EnterPath] at this host leads to its pages.
func (q *requestCheck) hasEnter() bool {
	_, ok := q.sitePage(q.ownOrigin())
	return ok
}

// byEnter returns the way back by [EnterPath], where a pass is used up and taken
// out of the URL, to a page of the site.
func (q *requestCheck) returnByEnter(rm *room, page string) returnTarget {
	w := returnTarget{to: q.ownOrigin() + EnterPath + "?to=" + url.QueryEscape(page)}
	if said := rm.state.returns.Load(); said != nil && q.hasEnter() {
		w.sig = said.key.sign(rm.URL, w.to)
	}
	return w
}

// returnHeader tells a script how its page is come back to; empty: as it likes.
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

// waitFor leads a visitor to a room, and back by [EnterPath]: a script asked that
// knows the room's URL.
func (q *requestCheck) waitAndEnter(room, page string) {
	rm, ok := q.config.byURL[room]
	switch {
	case !ok:
		http.Error(q.w, "room must be the URL of one that the rules name", http.StatusNotFound)
	case rm.Mode == rules.Closed:
		q.refuseClosed(rm)
	default:
		q.counts.queued.Add(1)
		q.w.Header().Set("Location", q.returnByEnter(rm, page).join(rm))
		q.w.WriteHeader(http.StatusSeeOther)
	}
}
