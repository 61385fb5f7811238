package account_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account"
)

// issuer is an identity provider of which a test decides what it says.
type issuer struct {
	*httptest.Server
	t   *testing.T
	key *ecdsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any // of the next ID token
	codes  map[string]url.Values
	down   bool
}

const clientID, clientSecret = "proofline", "client secret"

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discover)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

func (i *issuer) discover(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	i.answer(w, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

// token checks what the client shows and gives an ID token.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked, ok := i.codes[r.FormValue("code")]
	delete(i.codes, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	user, pass, _ := r.BasicAuth()
	if !ok || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || asked.Get("code_challenge_method") != "S256" ||
		user != clientID || pass != url.QueryEscape(clientSecret) || r.FormValue("redirect_uri") != asked.Get("redirect_uri") {
		w.WriteHeader(http.StatusBadRequest)
		i.answer(w, map[string]string{"error": "invalid_grant"})
		return
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: i.key, KeyID: "1"}}, nil)
	if err != nil {
		i.t.Error(err)
	}
	claims := map[string]any{"iss": i.URL, "aud": clientID, "nonce": asked.Get("nonce"), "iat": 1, "exp": int64(1) << 40}
	maps.Copy(claims, i.claims)
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		i.t.Error(err)
	}
	i.answer(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": text})
}

// authorize does what a person at the issuer does, who is sent back with the
// query that is returned.
func (i *issuer) authorize(start account.OIDCStart, claims map[string]any) url.Values {
	i.t.Helper()
	u, err := url.Parse(start.URL)
	if err != nil || u.Path != "/authorize" || u.Query().Get("redirect_uri") != "https://queue.example.com/console/oidc/callback" {
		i.t.Fatalf("%s, %v", start.URL, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := uuid.NewString()
	i.codes[code], i.claims = u.Query(), claims
	return url.Values{"code": {code}, "state": {u.Query().Get("state")}}
}

// oidcKit returns accounts that trust an issuer.
func oidcKit(t *testing.T) (*kit, *issuer) {
	t.Helper()
	i := newIssuer(t)
	return newKit(t, func(o *account.Options) {
		o.OIDC = &account.OIDCConfig{Issuer: i.URL, ClientID: clientID, ClientSecret: clientSecret, Domains: map[string]account.Role{"staff.example": account.Operator}}
	}), i
}

// through signs in through the issuer.
func (k *kit) through(i *issuer, s *account.Session, claims map[string]any) (account.SignedIn, error) {
	k.t.Helper()
	start, err := k.StartOIDC(k.t.Context(), s)
	if err != nil {
		k.t.Fatal(err)
	}
	return k.FinishOIDC(k.t.Context(), start.Cookie, i.authorize(start, claims), browser)
}

func ana(subject string) map[string]any {
	return map[string]any{"sub": subject, "email": "Ana@example.com", "email_verified": true, "name": "Ana"}
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	owner, _ := k.owner()
	in, err := k.through(i, nil, ana("1"))
	if err != nil || k.session(in.Token).Person != owner.Person {
		t.Fatalf("%+v, %v", in, err)
	}
	k.wantVerb(owner.Org, "identity.add")
	_, err = k.through(i, nil, ana("2"))
	wantError(t, "the address of somebody else now", err, account.ErrOIDC)
	renamed := ana("1")
	renamed["email"] = "new@example.com"
	if in, err = k.through(i, nil, renamed); err != nil || k.session(in.Token).Person != owner.Person {
		t.Errorf("the same subject: %+v, %v", in, err)
	}
	stranger := map[string]any{"sub": "3", "email": "eve@example.com", "email_verified": true}
	_, err = k.through(i, nil, stranger)
	wantError(t, "a stranger", err, account.ErrNoAccount)
	unverified := map[string]any{"sub": "4", "email": "dan@staff.example", "email_verified": false}
	_, err = k.through(i, nil, unverified)
	wantError(t, "not verified", err, account.ErrOIDC)
	unverified["email_verified"] = true
	if in, err = k.through(i, nil, unverified); err != nil {
		t.Fatal(err)
	}
	if dan := k.session(in.Token); dan.Role != account.Operator || dan.HasPassword || dan.Name != "dan@staff.example" || dan.Org.ID != account.MainOrg {
		t.Errorf("a new member %+v", dan)
	}
	_, err = k.SignIn(t.Context(), "dan@staff.example", "", browser)
	wantError(t, "without a password", err, account.ErrCredentials)
	for name, claims := range map[string]map[string]any{
		"issuer": {"iss": "https://other.example"}, "audience": {"aud": "other"}, "expired": {"exp": 2}, "nonce": {"nonce": "other"},
	} {
		maps.Copy(claims, map[string]any{"sub": "1"})
		_, err := k.through(i, nil, claims)
		wantError(t, name, err, account.ErrOIDC)
	}
}

// TestOIDCFlow comes back with what is not what was sent.
func TestOIDCFlow(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	ctx := t.Context()
	_, _ = k.owner()
	start, err := k.StartOIDC(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	other, err := k.StartOIDC(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	query := i.authorize(start, ana("1"))
	for name, cookie := range map[string]string{"none": "", "another": other.Cookie, "mangled": start.Cookie[1:]} {
		_, err := k.FinishOIDC(ctx, cookie, query, browser)
		wantError(t, name+" cookie", err, account.ErrSignedOut)
	}
	forged := url.Values{"code": query["code"], "state": {""}}
	_, err = k.FinishOIDC(ctx, start.Cookie, forged, browser)
	wantError(t, "no state", err, account.ErrSignedOut)
	_, err = k.FinishOIDC(ctx, start.Cookie, url.Values{"state": query["state"], "error": {"access_denied"}}, browser)
	wantError(t, "denied", err, account.ErrOIDC)
	stolen := url.Values{"code": query["code"], "state": i.authorize(other, ana("1"))["state"]}
	_, err = k.FinishOIDC(ctx, other.Cookie, stolen, browser)
	wantError(t, "a code of another flow", err, account.ErrOIDC)
	late := i.authorize(start, ana("1"))
	k.pass(account.OIDCLife + time.Second)
	_, err = k.FinishOIDC(ctx, start.Cookie, late, browser)
	wantError(t, "late", err, account.ErrSignedOut)
}

func TestOIDCConfirm(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	owner, token := k.owner()
	k.enrol(owner)
	in, err := k.through(i, nil, ana("1"))
	if err != nil || in.Token != "" || in.Pending == "" {
		t.Fatalf("a second factor is asked for after the issuer, too: %+v, %v", in, err)
	}
	ben := k.member(owner.Actor(), "ben@example.com", account.Viewer)
	k.pass(time.Hour)
	claims := ana("1")
	_, err = k.through(i, &owner, claims)
	wantError(t, "without a time", err, account.ErrOIDC)
	claims["auth_time"] = k.clock().Add(-6 * time.Minute).Unix()
	_, err = k.through(i, &owner, claims)
	wantError(t, "long ago", err, account.ErrOIDC)
	claims["auth_time"] = k.clock().Unix()
	_, err = k.through(i, &ben, claims)
	wantError(t, "somebody else", err, account.ErrOIDC)
	if in, err = k.through(i, &owner, claims); err != nil || !k.session(in.Token).IsConfirmed(k.clock()) || k.session(in.Token).ID != owner.ID {
		t.Errorf("confirmed %+v, %v", in, err)
	}
	_, err = k.Session(t.Context(), token)
	wantError(t, "the token from before", err, account.ErrSignedOut)
}

// TestOIDCDown starts without the issuer and asks it again later.
func TestOIDCDown(t *testing.T) {
	t.Parallel()
	k, i := oidcKit(t)
	i.down = true
	_, err := k.StartOIDC(t.Context(), nil)
	wantError(t, "down", err, account.ErrOIDC)
	i.mu.Lock()
	i.down = false
	i.mu.Unlock()
	_, err = k.StartOIDC(t.Context(), nil)
	wantError(t, "a moment later", err, account.ErrOIDC)
	k.pass(10 * time.Second)
	if _, err = k.StartOIDC(t.Context(), nil); err != nil {
		t.Error(err)
	}
	none := newKit(t)
	_, err = none.StartOIDC(t.Context(), nil)
	wantError(t, "not configured", err, account.ErrNoOIDC)
	if _, ok := none.OIDCName(); ok {
		t.Error("it has a name")
	}
	if name, ok := k.OIDCName(); !ok || name == "" {
		t.Error("no name")
	}
}
