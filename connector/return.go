package connector

import (
	"net/http"
	"net/url"

	"github.com/proofline/proofline/connector/rules"
)

// ReturnHeader is the header that tells a script how visitors return to the page it runs on: by the
// signature of the page's URL, or [ReturnByEnter].
const ReturnHeader = "Proofline-Return"

// ReturnByEnter is the value of [ReturnHeader] for a page without a signature of
// its own, if the room requires one: visitors return via [EnterPath].
const ReturnByEnter = "enter"

// returnTarget is a URL to return to.
type returnTarget struct {
	to  string // URL; empty: the room's first target
	sig string // signature of the URL; empty: unsigned
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

// returnTarget returns the way back from the room to a URL of this host. URLs that wait for the
// room accept a pass and are signed. Others go through [EnterPath] if the room requires signatures.
func (q *requestCheck) returnTarget(rm *room, to string) returnTarget {
	said := rm.state.reported.ReturnURLs()
	switch {
	case said == nil || to == "":
		return returnTarget{to, ""}
	case q.isQueuedFor(rm, to):
		return returnTarget{to, said.Key.Sign(rm.URL, to)}
	case said.IsRequired && q.hasEnter():
		return q.returnByEnter(rm, to)
	case said.IsRequired && len(q.config.Site.Hosts) == 0:
		q.warnUnsigned(rm)
	}
	return returnTarget{to, ""}
}

// isQueuedFor reports whether the rules send visitors of a URL to the room. They
// must name hosts: anyone can send us a request with another Host.
func (q *requestCheck) isQueuedFor(rm *room, to string) bool {
	if len(q.config.Site.Hosts) == 0 {
		return false
	}
	visit := &rules.Request{
		Method: http.MethodGet, Host: q.from.host, Target: to, Header: q.r.Header, Client: q.from.client,
	}
	got := q.config.Site.Decide(visit, q.now)
	return got.Outcome == rules.Queue && q.config.rooms[got.Room].URL == rm.URL
}

// hasEnter reports whether [EnterPath] accepts pages of this host.
func (q *requestCheck) hasEnter() bool {
	_, ok := q.sitePage(q.from.url())
	return ok
}

// returnByEnter returns the way back to a page of the site via [EnterPath], which
// redeems the pass and removes it from the URL.
func (q *requestCheck) returnByEnter(rm *room, page string) returnTarget {
	w := returnTarget{to: q.from.url() + EnterPath + "?to=" + url.QueryEscape(page)}
	if said := rm.state.reported.ReturnURLs(); said != nil && q.hasEnter() {
		w.sig = said.Key.Sign(rm.URL, w.to)
	}
	return w
}

// returnHeader returns the [ReturnHeader] for the page of a script; empty: no header.
func (q *requestCheck) returnHeader(rm *room, w returnTarget, page string) string {
	said := rm.state.reported.ReturnURLs()
	switch {
	case w.sig != "" && w.to == page:
		return w.sig
	case said != nil && said.IsRequired && q.hasEnter():
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
