// Package oidctest is an OpenID Connect issuer for tests, with configurable claims. It verifies the
// client's secret, PKCE and redirect URI.
package oidctest

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

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/uuid"
)

// The client's registration.
const (
	ClientID     = "proofline"
	ClientSecret = "client secret"
)

const keyID = "1"

// Issuer is a running issuer. It is safe for concurrent use.
type Issuer struct {
	URL string

	t   testing.TB
	key *ecdsa.PrivateKey

	mu     sync.Mutex
	claims map[string]any        // claims of the next ID token
	codes  map[string]url.Values // authorization requests by code
	down   bool
}

// Start starts an issuer that stops when the test ends.
func Start(t testing.TB) *Issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{t: t, key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discover)
	mux.HandleFunc("GET /keys", i.keys)
	mux.HandleFunc("POST /token", i.token)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.URL = server.URL
	return i
}

// SetDown makes the discovery endpoint fail, or work again.
func (i *Issuer) SetDown(down bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.down = down
}

// Authorize signs a person in at the issuer's address and returns the query of the redirect back.
// The ID token will have these claims.
func (i *Issuer) Authorize(address string, claims map[string]any) url.Values {
	i.t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Scheme+"://"+u.Host+u.Path != i.URL+"/authorize" {
		i.t.Fatalf("%s is not the authorization endpoint, %v", address, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := uuid.NewString()
	i.codes[code], i.claims = u.Query(), claims
	return url.Values{"code": {code}, "state": {u.Query().Get("state")}}
}

func (i *Issuer) answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

func (i *Issuer) discover(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.down {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	i.answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"jwks_uri":                              i.URL + "/keys",
		"id_token_signing_alg_values_supported": []string{"ES256"},
	})
}

func (i *Issuer) keys(w http.ResponseWriter, _ *http.Request) {
	i.answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &i.key.PublicKey, KeyID: keyID,
		Algorithm: "ES256", Use: "sig"}}})
}

// token exchanges a code for an ID token, once.
func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked, ok := i.codes[r.FormValue("code")]
	delete(i.codes, r.FormValue("code"))
	if !ok || !isClient(r, asked) {
		i.answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256,
		Key: jose.JSONWebKey{Key: i.key, KeyID: keyID}}, nil)
	if err != nil {
		i.t.Error(err)
	}
	claims := map[string]any{"iss": i.URL, "aud": ClientID, "nonce": asked.Get("nonce"), "iat": 1,
		"exp": int64(1) << 40}
	maps.Copy(claims, i.claims)
	text, err := jwt.Signed(signer).Claims(claims).Serialize()
	if err != nil {
		i.t.Error(err)
	}
	i.answer(w, http.StatusOK, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": text})
}

// isClient reports whether the request has the client's secret, redirect URI and PKCE verifier.
func isClient(r *http.Request, asked url.Values) bool {
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	challenge := base64.RawURLEncoding.EncodeToString(sum[:])
	user, pass, _ := r.BasicAuth()
	return user == ClientID && pass == url.QueryEscape(ClientSecret) &&
		r.FormValue("redirect_uri") == asked.Get("redirect_uri") &&
		asked.Get("code_challenge") == challenge && asked.Get("code_challenge_method") == "S256"
}
