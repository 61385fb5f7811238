package issuer

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential/issuer"
)

// device makes passkeys as a program with a virtual authenticator does.
type device struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	id   []byte
	user []byte
	rp   string // host that it makes passkeys for
	at   string // origin that it says it is at
}

func newDevice(t *testing.T) *device {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	d := &device{t: t, key: key, id: make([]byte, 32), rp: "club.example.org", at: ours}
	_, _ = rand.Read(d.id)
	return d
}

var b64 = base64.RawURLEncoding

var optionsField = regexp.MustCompile(`data-options="([^"]*)"`)

// options reads the options of a page.
func (d *device) options(p page) (o struct {
	Challenge string `json:"challenge"`
	User      struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"user"`
}) {
	d.t.Helper()
	text := optionsField.FindStringSubmatch(p.body)
	if text == nil {
		d.t.Fatalf("status %d, no options:\n%s", p.status, p.body)
	}
	if err := json.Unmarshal([]byte(html.UnescapeString(text[1])), &o); err != nil {
		d.t.Fatal(err)
	}
	return o
}

func (d *device) clientData(kind, challenge string) []byte {
	text, _ := json.Marshal(map[string]any{"type": "webauthn." + kind, "challenge": challenge, "origin": d.at, "crossOrigin": false})
	return text
}

// authData is the authenticator data, with flags for presence and verification of the user.
func (d *device) authData(flags byte, more []byte) []byte {
	host := sha256.Sum256([]byte(d.rp))
	return append(append(host[:], flags, 0, 0, 0, 0), more...)
}

// make returns what a browser says about a new passkey.
func (d *device) make(p page) string {
	d.t.Helper()
	o := d.options(p)
	d.user, _ = b64.DecodeString(o.User.ID)
	public, err := d.key.PublicKey.Bytes() // 4, X, Y
	if err != nil {
		d.t.Fatal(err)
	}
	cose := append([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32}, public[1:33]...)
	cose = append(append(cose, 0x22, 0x58, 32), public[33:]...)
	more := append(make([]byte, 16), 0, byte(len(d.id)))
	data := d.authData(0x45, append(append(more, d.id...), cose...))
	object := append([]byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x58"), byte(len(data)))
	return d.says(map[string]string{"clientDataJSON": b64.EncodeToString(d.clientData("create", o.Challenge)),
		"attestationObject": b64.EncodeToString(append(object, data...))})
}

// use returns what a browser says about a passkey that signs.
func (d *device) use(p page) string {
	d.t.Helper()
	client, data := d.clientData("get", d.options(p).Challenge), d.authData(5, nil)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(append(slices.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, d.key, digest[:])
	if err != nil {
		d.t.Fatal(err)
	}
	return d.says(map[string]string{"clientDataJSON": b64.EncodeToString(client), "authenticatorData": b64.EncodeToString(data),
		"signature": b64.EncodeToString(signature), "userHandle": b64.EncodeToString(d.user)})
}

func (d *device) says(response map[string]string) string {
	text, _ := json.Marshal(map[string]any{"id": b64.EncodeToString(d.id), "rawId": b64.EncodeToString(d.id), "type": "public-key",
		"clientExtensionResults": map[string]any{}, "response": response})
	return string(text)
}

// withPasskeys gives the offers of addresses and of accounts passkeys.
func (b *bench) withPasskeys() {
	b.t.Helper()
	config := b.site.Config
	config.Offers, config.Limits = slices.Clone(config.Offers), free(config.Log)
	for i, o := range config.Offers {
		changed := *o
		changed.Passkeys = o.Proof == ByMail || o.Proof == ByOIDC
		config.Offers[i] = &changed
	}
	room, _ := url.Parse(roomURL)
	config.Offers = append(config.Offers, &Offer{RoomURL: room, Proof: ByMail, Domains: []string{"example.com"}, Passkeys: true,
		Offer: &issuer.Offer{Name: "others", Method: "club", Room: roomHash, Lanes: []string{"general", "members"}}})
	site, err := New(config)
	if err != nil {
		b.t.Fatal(err)
	}
	b.site.Close()
	b.site = site
}

const scriptPolicy = "default-src 'none'; style-src 'self'; script-src https://club.example.org/passkey.js; base-uri 'none'; " +
	"frame-ancestors 'none'; form-action 'self' https://queue.example.com"

// withScript sends a form of this site whose page may have the script of passkeys, and no other.
func (v *visitor) withScript(path string, form url.Values) page {
	v.t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(form.Encode()))
	r.RemoteAddr = v.addr
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", ours)
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	v.site.ServeHTTP(w, r)
	p := page{status: w.Code, body: w.Body.String(), header: w.Header()}
	p.location, _ = w.Result().Location()
	if !strings.Contains(p.body, "data-options") {
		v.check(p)
	} else if got := p.header.Get("Content-Security-Policy"); got != scriptPolicy ||
		strings.Count(p.body, "<script") != 1 || !strings.Contains(p.body, `<script type="module" src="/passkey.js"></script>`) ||
		!strings.Contains(p.body, "<noscript>") {
		v.t.Errorf("policy %q:\n%s", got, p.body)
	}
	return p
}

// byMail proves Anna's address, and returns the page that offers to save a passkey.
func (v *visitor) byMail(ticket string) page {
	v.t.Helper()
	v.now = v.now.Add(mailInterval + 1) // or there would be too many mails
	sent := v.submit(v.enter("mail", ticket, "fragment"), "/mail/prove", "address", "anna@example.org")
	code := v.codeTo("anna@example.org")
	v.codes = append(v.codes, code)
	form := sent.fields()
	form.Set("code", code)
	return v.withScript("/mail/code", form)
}

// sends sends what a device says with a page's form.
func (v *visitor) sends(p page, path, said string) page {
	v.t.Helper()
	form := p.fields()
	form.Set("passkey", said)
	return v.withScript(path, form)
}

// ask opens the page on which a visitor comes back.
func (v *visitor) ask(offer, ticket string) page {
	v.t.Helper()
	return v.withScript("/"+offer+"/passkey", v.enter(offer, ticket, "fragment").fields())
}

// TestPasskey comes back with a passkey to an account that was proven by mail: it is the same account.
func TestPasskey(t *testing.T) {
	b := newBench(t)
	b.withPasskeys()
	v, d := b.visitor(), newDevice(t)
	v.refused(v.sends(v.ask("mail", "1"), "/mail/return", d.use(v.ask("mail", "1"))), http.StatusForbidden, "error.passkey") // saved nowhere

	offered := v.byMail("1")
	if got := d.options(offered).User.Name; got != "anna@example.org" {
		t.Errorf("the device shows %q", got)
	}
	first := v.returned(v.sends(offered, "/mail/keep", d.make(offered)), "1")
	asked := v.ask("mail", "2")
	second := v.returned(v.sends(asked, "/mail/return", d.use(asked)), "2")
	if !bytes.Equal(first.Nullifier, second.Nullifier) {
		t.Error("a passkey makes another account")
	}
	other := newDevice(t)
	offered = v.byMail("3")
	third := v.returned(v.sends(offered, "/mail/keep", other.make(offered)), "3")
	if !bytes.Equal(first.Nullifier, third.Nullifier) {
		t.Error("a second passkey makes another account")
	}
	skipped := v.byMail("4")
	if fourth := v.returned(v.withScript("/mail/keep", skipped.fields()), "4"); !bytes.Equal(first.Nullifier, fourth.Nullifier) {
		t.Error("without a passkey it is another account")
	}

	// Nothing else is good: an old challenge, another site, another key, another user, another offer's accounts.
	asked = v.ask("mail", "5")
	old := d.use(v.ask("mail", "5"))
	elsewhere, forged, stranger := *d, *other, *d
	elsewhere.at = "https://evil.example"
	forged.id, forged.user = d.id, d.user
	stranger.user = make([]byte, 32)
	for what, said := range map[string]string{"an old challenge": old, "another site": elsewhere.use(asked), "another key": forged.use(asked),
		"another user": stranger.use(asked), "nothing": "", "no JSON": "x"} {
		t.Log(what)
		p := v.sends(asked, "/mail/return", said)
		v.refused(p, http.StatusForbidden, "error.passkey")
		again := v.returned(v.sends(p, "/mail/return", d.use(p)), "5") // the page comes again, with another challenge
		if !bytes.Equal(first.Nullifier, again.Nullifier) {
			t.Error("another account")
		}
	}
	for _, offer := range []string{"others", "account"} {
		asked := v.ask(offer, "6")
		v.refused(v.sends(asked, "/"+offer+"/return", d.use(asked)), http.StatusForbidden, "error.passkey")
	}
	offered = v.byMail("7")
	fresh := newDevice(t)
	fresh.at = "https://evil.example"
	v.refused(v.sends(offered, "/mail/keep", fresh.make(offered)), http.StatusForbidden, "error.passkey")
	offered = v.byMail("8")
	v.refused(v.sends(offered, "/mail/keep", d.make(offered)), http.StatusForbidden, "error.passkey") // it is saved already
}

// TestPasskeyOfProvider comes back to an account of an OpenID Connect provider, whose address is remembered.
func TestPasskeyOfProvider(t *testing.T) {
	b := newBench(t)
	b.withPasskeys()
	v, d := b.visitor(), newDevice(t)
	r := httptest.NewRequest(http.MethodGet, v.signIn(v.enter("account", "1", "fragment"),
		map[string]any{"sub": "anna", "email": "anna@example.org", "email_verified": true}), nil)
	r.RemoteAddr = v.addr
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	b.site.ServeHTTP(w, r)
	offered := page{status: w.Code, body: w.Body.String()}
	first := v.returned(v.sends(offered, "/account/keep", d.make(offered)), "1")
	asked := v.ask("account", "2")
	second := v.returned(v.sends(asked, "/account/return", d.use(asked)), "2")
	if !bytes.Equal(first.Nullifier, second.Nullifier) {
		t.Error("a passkey makes another account")
	}
	asked = v.ask("mail", "3")
	v.refused(v.sends(asked, "/mail/return", d.use(asked)), http.StatusForbidden, "error.passkey") // not proven by mail
}

// TestPasskeysWhereThereAreNone has no such pages for other offers, nor a script anywhere else.
func TestPasskeysWhereThereAreNone(t *testing.T) {
	b := newBench(t)
	v := b.visitor()
	for _, offer := range []string{"codes", "mail"} {
		p := v.enter(offer, "1", "")
		if strings.Contains(p.body, "/passkey") {
			t.Errorf("%s has passkeys:\n%s", offer, p.body)
		}
		v.refused(v.do(http.MethodPost, "/"+offer+"/passkey", ours, p.fields()), http.StatusBadRequest, "error.form")
		v.refused(v.do(http.MethodPost, "/"+offer+"/return", ours, p.fields()), http.StatusGone, "error.expired")
		v.refused(v.do(http.MethodPost, "/"+offer+"/keep", ours, p.fields()), http.StatusGone, "error.expired")
	}
	room, _ := url.Parse(roomURL)
	c := b.site.Config
	c.Offers = []*Offer{{RoomURL: room, Proof: ByList, List: b.list("codes", true, "code"), Passkeys: true, Offer: &issuer.Offer{Name: "derby"}}}
	if s, err := New(c); err == nil {
		s.Close()
		t.Error("passkeys for codes")
	}
	c.Offers = []*Offer{{RoomURL: room, Proof: ByMail, Passkeys: true, Offer: &issuer.Offer{Name: "derby"}}}
	c.URL, _ = url.Parse("https://192.0.2.1")
	if s, err := New(c); err == nil || !strings.Contains(err.Error(), "a host with a name") {
		t.Errorf("passkeys for an address: %v", err)
		if s != nil {
			s.Close()
		}
	}
}

// FuzzPasskeyResponse reads what browsers say about passkeys.
func FuzzPasskeyResponse(f *testing.F) {
	u, _ := url.Parse(ours)
	c := Config{URL: u, Name: "Example Club"}
	w, err := c.newWebAuthn()
	if err != nil {
		f.Fatal(err)
	}
	store, err := issuer.OpenStore(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = store.Close() })
	if c.Issuer, err = issuer.New(make([]byte, issuer.SecretSize), store); err != nil {
		f.Fatal(err)
	}
	s := passkeys{&Site{Config: c}, w}
	f.Add(`{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{"clientDataJSON":"e30","authenticatorData":"AAAA","signature":"AAAA","userHandle":"AAAA"}}`)
	f.Add(`{"id":"AAAA","rawId":"AAAA","type":"public-key","response":{"clientDataJSON":"e30","attestationObject":"oA"}}`)
	challenge := b64.EncodeToString(binary.BigEndian.AppendUint64(make([]byte, 24), 1))
	session, _ := json.Marshal(map[string]any{"challenge": challenge, "rpId": "club.example.org"})
	f.Fuzz(func(t *testing.T, said string) {
		if p, err := s.known(&flow{Session: session}, said); err == nil {
			t.Errorf("%q is %v", said, p)
		}
		if err := s.keepPasskey(&flow{Session: session, Account: "mail\x1fa", Address: "a@example.org"}, said); err == nil {
			t.Errorf("%q makes a passkey", said)
		}
	})
}
