// Package shop is the site of the demo: a small shop that sells the tickets of
// one evening. It knows nothing of waiting lines, but for two headers: it sells
// to whom X-Proofline-Ticket names, and answers with Proofline-Command when
// somebody has bought.
//
//	GET  /              what is sold, for everybody
//	GET  /tickets       the seats, who waited
//	GET  /tickets/left  {"left": 199}
//	POST /tickets/buy   seat=C7, or none for any: 303 to the order, and the visit is over
//	GET  /orders/ID     the order, for who knows its address
package shop

import (
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"sync"
)

//go:embed page.html shop.css shop.js
var files embed.FS

var pages = template.Must(template.ParseFS(files, "page.html"))

// SeatsInRow is how many seats a row has.
const SeatsInRow = 20

const maxForm = 1 << 10 // bytes

// policy is strict, but says nothing of forms: browsers hold their redirects
// against it, and who sends one too late is led to the line.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; frame-ancestors 'none'"

// Order is a seat that was sold.
type Order struct {
	ID     string
	Seat   string
	Ticket string // of the line
}

// Shop sells seats. Safe for concurrent use.
type Shop struct {
	mux *http.ServeMux

	mu     sync.Mutex
	seats  []string          // all, in their order
	taken  map[string]bool   // by seat
	orders map[string]*Order // by id
	sold   []Order           // the oldest first
	strays int               // requests below /tickets of nobody
}

// New returns a shop with rows of seats.
func New(rows int) *Shop {
	s := &Shop{mux: http.NewServeMux(), taken: map[string]bool{}, orders: map[string]*Order{}}
	for row := range rows {
		for seat := range SeatsInRow {
			s.seats = append(s.seats, fmt.Sprintf("%s%d", rowName(row), seat+1))
		}
	}
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { s.show(w, "home", nil) })
	s.mux.HandleFunc("GET /tickets", s.visitors(s.list))
	s.mux.HandleFunc("GET /tickets/left", s.visitors(s.left))
	s.mux.HandleFunc("POST /tickets/buy", s.visitors(s.buy))
	s.mux.HandleFunc("GET /orders/{id}", s.order)
	s.mux.Handle("GET /shop.css", http.FileServerFS(files))
	s.mux.Handle("GET /shop.js", http.FileServerFS(files))
	return s
}

// rowName counts A to Z, AA, AB.
func rowName(row int) string {
	name := string(rune('A' + row%26)) //nolint:gosec // a letter
	if row >= 26 {
		return rowName(row/26-1) + name
	}
	return name
}

// ServeHTTP implements [http.Handler].
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	s.mux.ServeHTTP(w, r)
}

// Sold returns what was sold, the oldest first.
func (s *Shop) Sold() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Order(nil), s.sold...)
}

// Strays returns how many requests below /tickets came from somebody who was
// not let in. Behind a connector there are none.
func (s *Shop) Strays() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.strays
}

// visitors turns away who was not let in, which only the connector can know.
func (s *Shop) visitors(next func(w http.ResponseWriter, r *http.Request, ticket string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ticket := r.Header.Get("X-Proofline-Ticket")
		if ticket == "" {
			s.mu.Lock()
			s.strays++
			s.mu.Unlock()
			http.Error(w, "This shop stands behind proofline proxy.", http.StatusForbidden)
			return
		}
		next(w, r, ticket)
	}
}

// seat is one of a row, as its page shows it.
type seat struct {
	Name    string
	IsTaken bool
}

func (s *Shop) list(w http.ResponseWriter, _ *http.Request, ticket string) {
	s.mu.Lock()
	var rows [][]seat
	for i, name := range s.seats {
		if i%SeatsInRow == 0 {
			rows = append(rows, nil)
		}
		last := &rows[len(rows)-1]
		*last = append(*last, seat{name, s.taken[name]})
	}
	s.mu.Unlock()
	s.show(w, "tickets", map[string]any{"Ticket": ticket, "Rows": rows})
}

func (s *Shop) left(w http.ResponseWriter, _ *http.Request, _ string) {
	s.mu.Lock()
	left := len(s.seats) - len(s.taken)
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]int{"left": left})
}

func (s *Shop) buy(w http.ResponseWriter, r *http.Request, ticket string) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "The form cannot be read.", http.StatusBadRequest)
		return
	}
	order, ok := s.sell(r.PostFormValue("seat"), ticket)
	if !ok {
		w.WriteHeader(http.StatusConflict)
		s.show(w, "gone", nil)
		return
	}
	w.Header().Set("Proofline-Command", "release") // the next one may come in
	http.Redirect(w, r, "/orders/"+order.ID, http.StatusSeeOther)
}

// sell sells a seat; the first that is free if none is wanted.
func (s *Shop) sell(wanted, ticket string) (Order, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.seats {
		if s.taken[name] || wanted != "" && wanted != name {
			continue
		}
		o := Order{rand.Text(), name, ticket}
		s.taken[name], s.orders[o.ID] = true, &o
		s.sold = append(s.sold, o)
		return o, true
	}
	return Order{}, false
}

func (s *Shop) order(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	o, ok := s.orders[r.PathValue("id")]
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	s.show(w, "order", o)
}

// show writes a page.
func (s *Shop) show(w http.ResponseWriter, name string, data any) {
	var page strings.Builder
	if err := pages.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, page.String())
}
