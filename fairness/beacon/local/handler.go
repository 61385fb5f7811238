package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/proofline/proofline/fairness/beacon/relay"
)

// Handler serves the beacon with the HTTP API of a drand relay:
//
//	/chains                   hashes of the chains, here just one
//	/health                   {"current":n,"expected":n}
//	/info                     the chain
//	/public/{round}           a round; 404 before its time
//	/public/latest            the latest round, as does /public/0
//	/{chain hash}/...         the same, except /chains
//
// https://docs.drand.love/developer/http-api
func (b *Beacon) Handler() http.Handler {
	mux := http.NewServeMux()
	hash := fmt.Sprintf("%x", b.chain.Hash())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = fmt.Fprintf(w, "A beacon with a single key and drand's API. It proves nothing to third parties.\nSee /%s/info\n", hash)
	})
	mux.HandleFunc("GET /chains", func(w http.ResponseWriter, _ *http.Request) { answer(w, forever, encode([]string{hash})) })
	for _, prefix := range []string{"", "/" + hash} {
		mux.HandleFunc("GET "+prefix+"/info", func(w http.ResponseWriter, _ *http.Request) { answer(w, forever, relay.EncodeInfo(b.chain)) })
		mux.HandleFunc("GET "+prefix+"/health", b.serveHealth)
		mux.HandleFunc("GET "+prefix+"/public/{round}", b.serveRound)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Access-Control-Allow-Origin", "*")
		mux.ServeHTTP(w, r)
	})
}

// Caching headers.
const (
	forever = "public, max-age=604800, immutable" // as drand sends for immutable answers
	never   = "no-store"
)

func answer(w http.ResponseWriter, caching string, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", caching)
	_, _ = w.Write(body) // the client may be gone
}

func (b *Beacon) serveHealth(w http.ResponseWriter, _ *http.Request) {
	latest := b.Latest()
	answer(w, never, encode(map[string]uint64{"current": latest, "expected": latest}))
}

func (b *Beacon) serveRound(w http.ResponseWriter, r *http.Request) {
	round, caching := uint64(0), forever
	if text := r.PathValue("round"); text != "latest" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			http.Error(w, "not a round number: want a decimal number, or latest", http.StatusBadRequest)
			return
		}
		round = n
	}
	if round == 0 {
		round, caching = b.Latest(), never
	}
	signature, err := b.Sign(round)
	if err != nil { // it is ErrFuture or, before the first round, ErrRound
		w.Header().Set("Cache-Control", never)
		http.Error(w, b.notYet(max(round, 1)).Error(), http.StatusNotFound)
		return
	}
	answer(w, caching, relay.EncodeRound(round, signature))
}

// notYet returns an error that says when a round appears.
func (b *Beacon) notYet(round uint64) error {
	if ms := b.chain.Emitted(round); ms < 1<<53 {
		return fmt.Errorf("round %d appears at %s", round, time.UnixMilli(ms).UTC().Format(time.RFC3339))
	}
	return errors.New("this round never appears")
}

func encode(v any) []byte {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers always encode
	}
	return append(body, '\n')
}
