package conformance

import (
	"crypto/ed25519"
	"crypto/rand"
	_ "embed" // embeds the rules
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/mod/sumdb/note"
)

// Token is the connectors' API token.
const Token = "the-token-of-connectors"

// grace is how long the same client may redeem a pass again.
const grace = 30 * time.Second

// Room is a server with rooms that issue passes at once, and with the rules of a
// site: the room sale, where every visitor waits, the room market in mode
// safety-net, and one for each other mode, bind and failure.
type Room struct {
	testing.TB
	server  *httptest.Server
	private ed25519.PrivateKey
	signer  note.Signer
	siteKey string

	mu           sync.Mutex // guards the fields below
	used         map[string]redemption
	gate         gate
	ended        map[string][]string // sessions that ended at other nodes, by room URL
	reports      map[string]int      // reports since the gate was set, by node
	isForged     bool
	forgedServed int  // number of times that forged rules were served
	isDown       bool // the rooms that can fail are down
	received     received
}

// redemption records the use of a pass.
type redemption struct {
	client string
	at     time.Time
}

// gate is the gate of market in replies to reports.
type gate struct {
	isOpen    bool
	share     int
	perMinute int
}

// received is what connectors have reported so far.
type received struct {
	started, ended    map[string]bool // unqueued sessions
	touched, released map[string]bool // passes
	turned            uint64
	failedOpen        uint64            // requests admitted while a room was out of reach
	observed          map[string]uint64 // requests in the last hour for the room that is off, by node
}

// NewRoom starts the server. The gate of market is open.
func NewRoom(t testing.TB) *Room {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r := &Room{
		TB: t, private: private, used: map[string]redemption{}, gate: gateOpen, reports: map[string]int{},
		received: received{observed: map[string]uint64{}, started: map[string]bool{}, ended: map[string]bool{},
			touched: map[string]bool{}, released: map[string]bool{}},
	}
	r.signer, r.siteKey = newSigner(t)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /r/{name}/.well-known/openid-configuration", func(w http.ResponseWriter, q *http.Request) {
		send(w, map[string]string{"issuer": r.room(q.PathValue("name")),
			"jwks_uri": r.room(q.PathValue("name")) + "/jwks.json"})
	})
	mux.HandleFunc("GET /r/{name}/jwks.json", func(w http.ResponseWriter, _ *http.Request) {
		send(w, map[string]any{"keys": []any{map[string]string{"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA",
			"use": "sig",
			"kid": "k", "x": r.publicKey()}}})
	})
	mux.HandleFunc("POST /r/{name}/passes/{id}/redeem", r.redeem)
	mux.HandleFunc("POST /r/{name}/sessions/batch", r.batch)
	mux.HandleFunc("POST /v1/connectors/report", r.report)
	mux.HandleFunc("GET /v1/sites/shop/rules", r.rules)
	r.server = httptest.NewServer(r.withFailures(mux))
	t.Cleanup(r.server.Close)
	return r
}

func newSigner(t testing.TB) (s note.Signer, verifier string) {
	t.Helper()
	private, verifier, err := note.GenerateKey(rand.Reader, "queue.example.com/o/shop")
	if err == nil {
		s, err = note.NewSigner(private)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, verifier
}

func send(w http.ResponseWriter, v any) { _ = json.NewEncoder(w).Encode(v) }

func (r *Room) publicKey() string {
	public, _ := r.private.Public().(ed25519.PublicKey)
	return base64.RawURLEncoding.EncodeToString(public)
}

// redeem redeems a pass. The same client may repeat that for a while.
func (r *Room) redeem(w http.ResponseWriter, q *http.Request) {
	id, client, now := q.PathValue("id"), q.Header.Get("Proofline-Client"), time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	if before, ok := r.used[id]; ok && (client == "" || client != before.client || now.Sub(before.at) > grace) {
		w.WriteHeader(http.StatusConflict)
		return
	} else if !ok {
		r.used[id] = redemption{client, now}
	}
	length := time.Hour
	if q.PathValue("name") == "brief" {
		length = briefLength
	}
	send(w, map[string]any{"pass_id": id, "ends": now.Add(length), "ends_at_most": now.Add(4 * length)})
}

// batch receives touches and releases.
func (r *Room) batch(w http.ResponseWriter, q *http.Request) {
	if q.Header.Get("Content-Type") != "application/json" { // as the real server requires
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	var said struct{ Touch, Release []string }
	if err := json.NewDecoder(q.Body).Decode(&said); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := map[string][]string{"touch": {}, "release": {}}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, token := range said.Touch {
		r.received.touched[idOf(token)] = true
		answer["touch"] = append(answer["touch"], "ok")
	}
	for _, token := range said.Release {
		r.received.released[idOf(token)] = true
		answer["release"] = append(answer["release"], "ok")
	}
	send(w, answer)
}

// idOf returns the id of a pass.
func idOf(token string) string {
	var said jwt.RegisteredClaims
	_, _, _ = jwt.NewParser().ParseUnverified(token, &said) // malformed: empty id
	return said.ID
}

// roomReport is a room in a report.
type roomReport struct {
	Room, Mode             string
	Started, Active, Ended []string
	TurnedAway             uint64     `json:"turned"`
	FailOpen               []failOpen `json:"fail_open"`
}

// report receives a connector's report.
func (r *Room) report(w http.ResponseWriter, q *http.Request) {
	var said struct {
		Node, Site, Kind string
		Version          uint64 `json:"rules_version"`
		Counts           map[string]uint64
		Rooms            []roomReport
	}
	if err := json.NewDecoder(q.Body).Decode(&said); err != nil || q.Header.Get("Authorization") != "Bearer "+Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if len(said.Node) != 22 || said.Site != "shop" || said.Version != version || said.Kind == "" {
		r.Errorf("report %+v", said)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.reports[said.Node]++
	r.received.observed[said.Node] = said.Counts["observed_hour_off"]
	answer := []any{}
	for _, room := range said.Rooms {
		answer = append(answer, r.answer(room))
	}
	send(w, map[string]any{"rooms": answer})
}

// answer applies a report about a room, and returns the reply. The caller holds the
// lock.
func (r *Room) answer(said roomReport) map[string]any {
	for _, id := range said.Started {
		r.received.started[id] = true
	}
	for _, id := range said.Ended {
		r.received.ended[id] = true
	}
	r.received.turned += said.TurnedAway
	state := map[bool]string{true: "open", false: "shut"}
	isOpen, key := r.gate.isOpen && said.Room == r.Net(), r.returnKey(said.Room)
	return map[string]any{
		"room": said.Room, "gate": state[isOpen], "share": r.gate.share, "per_minute": r.gate.perMinute,
		"max_active": 0, "nodes": 1, "session_ms": time.Hour.Milliseconds(),
		"over": r.ended[said.Room], "recorded": r.record(said),
		"return_key":    base64.RawURLEncoding.EncodeToString(key[:]),
		"signed_return": said.Room == r.Net(),
	}
}

// version is the version of the site's rules.
const version = 7

// rules serves the site's rules, or forged ones that admit every request.
func (r *Room) rules(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Header.Get("Authorization") != "Bearer "+Token {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	text := r.note(version, r.document(), r.signer)
	if r.isForged {
		text = r.forge(r.forgedServed)
		r.forgedServed++
	}
	w.Header().Set("ETag", strconv.Quote(strconv.Itoa(r.forgedServed)))
	_, _ = w.Write([]byte(text))
}

// note signs rules.
func (r *Room) note(version uint64, document string, by note.Signer) string {
	text, err := note.Sign(&note.Note{Text: fmt.Sprintf("proofline-rules/v1\nshop\n%d\n%s\n", version,
		strings.TrimSpace(document))}, by)
	if err != nil {
		r.Error(err)
	}
	return string(text)
}

// free holds rules that admit every request.
const free = `{"version": 1, "defaults": "off"}`

// forge returns the n-th of several notes that connectors must refuse.
func (r *Room) forge(n int) string {
	other, _ := newSigner(r.TB)
	good := r.note(version+1, r.document(), r.signer)
	return []string{
		r.note(version+1, free, other),
		strings.Replace(good, strings.TrimSpace(r.document()), free, 1),
		r.note(version-1, free, r.signer),
		r.note(version, free, r.signer),
		free,
	}[n%5]
}

//go:embed rules.json
var rulesJSON string

func (r *Room) document() string {
	return strings.NewReplacer("{room}", r.URL(), "{net}", r.Net(), "{rooms}", r.room("")).Replace(rulesJSON)
}

// RulesURL returns the URL of the signed rules for the cases. It requires [Token].
func (r *Room) RulesURL() string { return r.server.URL + "/v1/sites/shop/rules" }

// SiteKey returns the verifier key of the rules.
func (r *Room) SiteKey() string { return r.siteKey }

// URL returns the address of the room sale.
func (r *Room) URL() string { return r.room("sale") }

// Net returns the address of the room market, in mode safety-net.
func (r *Room) Net() string { return r.room("market") }

func (r *Room) room(name string) string { return r.server.URL + "/r/" + name }

// claims returns the claims of a new pass.
func (r *Room) claims(room string) jwt.MapClaims {
	now := time.Now()
	return jwt.MapClaims{
		"iss": room, "aud": []string{strings.TrimPrefix(room, "http://")}, "sub": newID(), "jti": newID(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(time.Hour).Unix(), "position": 1, "lane": "general",
	}
}

// sign signs claims as a token.
func (r *Room) sign(method jwt.SigningMethod, key any, claims jwt.MapClaims, header map[string]any) string {
	t := jwt.NewWithClaims(method, claims)
	t.Header["kid"] = "k"
	for name, value := range header {
		t.Header[name] = value
	}
	text, err := t.SignedString(key)
	if err != nil {
		r.Fatal(err)
	}
	return text
}

// pass returns a new pass of a room.
func (r *Room) pass(room string) string {
	return r.sign(jwt.SigningMethodEdDSA, r.private, r.claims(room), nil)
}

func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
