package witness

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// statuses maps errors to HTTP statuses, for client and handler.
//
// https://c2sp.org/tlog-witness#add-checkpoint
var statuses = []struct {
	err  error
	code int
}{
	{ErrMalformed, http.StatusBadRequest},
	{ErrUnsigned, http.StatusForbidden},
	{ErrUnknownLog, http.StatusNotFound},
	{ErrTooLarge, http.StatusRequestEntityTooLarge},
	{ErrInconsistent, http.StatusUnprocessableEntity},
	{ErrUnavailable, http.StatusServiceUnavailable},
}

// sizeType is the media type of a size in an answer with status 409.
const sizeType = "text/x.tlog.size"

// Handler serves the witness below a path prefix, empty or such as /witness:
//
//	POST add-checkpoint     the protocol
//	GET  <id>/checkpoint    latest cosigned checkpoint of a log, for monitors
//	GET  healthz            whether the store is readable
//	GET  .                  name, key and logs of the witness, for people
//
// https://c2sp.org/tlog-witness#http-interface
func (w *Witness) Handler(prefix string) http.Handler {
	prefix = strings.TrimRight(prefix, "/")
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+prefix+"/add-checkpoint", w.addCheckpoint)
	mux.HandleFunc("GET "+prefix+"/{id}/checkpoint", w.checkpoint)
	mux.HandleFunc("GET "+prefix+"/healthz", w.health)
	mux.HandleFunc("GET "+prefix+"/{$}", w.index)
	return mux
}

func (w *Witness) addCheckpoint(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(rw, r.Body, MaxRequest))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		w.refuse(r.Context(), rw, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, MaxRequest))
		return
	case err != nil:
		w.refuse(r.Context(), rw, fmt.Errorf("%w: read body: %w", ErrMalformed, err))
		return
	}
	request, err := ParseRequest(body)
	if err != nil {
		w.refuse(r.Context(), rw, err)
		return
	}
	c, err := w.AddCheckpoint(r.Context(), request)
	if err != nil {
		w.refuse(r.Context(), rw, err)
		return
	}
	text(rw, "text/plain; charset=utf-8", http.StatusOK, c.Line(w.key.Name()))
}

func (w *Witness) refuse(ctx context.Context, rw http.ResponseWriter, err error) {
	var conflict *ConflictError
	if errors.As(err, &conflict) {
		text(rw, sizeType, http.StatusConflict, strconv.FormatUint(conflict.Size, 10)+"\n")
		return
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			level := slog.LevelDebug
			if s.code == http.StatusServiceUnavailable {
				rw.Header().Set("Retry-After", "1")
				level = slog.LevelWarn
			}
			w.log.Log(ctx, level, "not cosigned", "status", s.code, "error", err)
			text(rw, "text/plain; charset=utf-8", s.code, err.Error()+"\n")
			return
		}
	}
	w.log.ErrorContext(ctx, "not cosigned", "error", err)
	text(rw, "text/plain; charset=utf-8", http.StatusInternalServerError, "internal error\n")
}

// checkpoint serves the latest cosigned checkpoint of a log to monitors.
//
// https://c2sp.org/tlog-witness#monitor-retrieval-mechanism
func (w *Witness) checkpoint(rw http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if b, err := hex.DecodeString(id); err != nil || hex.EncodeToString(b) != id || len(b) != 32 {
		text(rw, "text/plain; charset=utf-8", http.StatusNotFound,
			"want the SHA-256 of an origin in lower-case hexadecimal\n")
		return
	}
	signed, err := w.store.latest(id)
	switch {
	case err != nil:
		w.refuse(r.Context(), rw, err)
	case signed == nil:
		text(rw, "text/plain; charset=utf-8", http.StatusNotFound, "no checkpoint cosigned\n")
	default:
		text(rw, "text/plain; charset=utf-8", http.StatusOK, string(signed))
	}
}

func (w *Witness) health(rw http.ResponseWriter, _ *http.Request) {
	if _, err := os.ReadDir(w.store.dir); err != nil {
		w.log.Error("store not readable", "error", err)
		text(rw, "text/plain; charset=utf-8", http.StatusServiceUnavailable, "store not readable\n")
		return
	}
	text(rw, "text/plain; charset=utf-8", http.StatusOK, "ok\n")
}

func (w *Witness) index(rw http.ResponseWriter, _ *http.Request) {
	var b strings.Builder
	logs := *w.logs.Load()
	fmt.Fprintf(&b, "This is the witness %s, following https://c2sp.org/tlog-witness.\nIts key is\n\n  %s\n\nLogs it follows: %d\n",
		w.key.Name(), w.key, len(logs))
	for _, origin := range slices.Sorted(maps.Keys(logs)) {
		fmt.Fprintf(&b, "\n%s\n", origin)
		latest, err := w.latest(origin)
		switch {
		case err != nil:
			b.WriteString("  its state is damaged: the witness cosigns nothing for this log\n")
		case latest.signed == nil:
			b.WriteString("  nothing cosigned yet\n")
		default:
			fmt.Fprintf(&b, "  cosigned at size %d, %s\n  %s/checkpoint\n", latest.Size,
				time.Unix(latest.time, 0).UTC().Format(time.RFC3339), LogID(origin))
		}
		if n := w.store.evidence(origin, fork); n > 0 {
			fmt.Fprintf(&b, "  FORK: the log signed two histories; checkpoint pairs that prove it: %d\n", n)
		}
	}
	text(rw, "text/plain; charset=utf-8", http.StatusOK, b.String())
}

// text writes an answer. Write errors are ignored: the client may be gone.
func text(rw http.ResponseWriter, mediaType string, code int, body string) {
	rw.Header().Set("Content-Type", mediaType)
	rw.Header().Set("X-Content-Type-Options", "nosniff")
	rw.Header().Set("Cache-Control", "no-cache")
	rw.WriteHeader(code)
	_, _ = io.WriteString(rw, body) //nolint:gosec // browsers do not render text/plain as HTML
}
