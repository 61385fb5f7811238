// Package shop is the site that the demo protects: a small shop that sells seats for
// one concert. It knows two headers of the connector in front of it: it sells to
// requests with X-Proofline-Ticket, and answers a purchase with Proofline-Command to
// end the session.
//
//	GET  /              front page, needs no ticket
//	GET  /tickets       the seats
//	GET  /tickets/left  {"left": 199}
//	POST /tickets/buy   seat=C7, or any seat without it: 303 to the order
//	GET  /orders/ID     the order, needs no ticket
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

// SeatsInRow is the number of seats in a row.
const SeatsInRow = 20

const maxForm = 1 << 10 // maximum size of a form, in bytes

// policy has no form-action, because browsers also apply it to the redirects of forms, and the
// connector redirects a form that is submitted too late to the room.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
	"base-uri 'none'; frame-ancestors 'none'"

// Order is a seat that was sold.
type Order struct {
	ID     string
	Seat   string
	Ticket string // ticket of the waiting room
}

// Shop sells seats. Safe for concurrent use.
type Shop struct {
	mux *http.ServeMux

	mu     sync.Mutex
	seats  []string          // all seats, in order
	taken  map[string]bool   // IDs of visitors' tickets by seat
	orders map[string]*Order // orders by ID
	sold   []Order           // oldest first

	bypassed int // requests below /tickets without a ticket
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

// rowName returns the names A to Z, AA, AB and so on.
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

// Sold returns all orders, oldest first.
func (s *Shop) Sold() []Order {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Order(nil), s.sold...)
}

// Bypassed returns the number of requests below /tickets without a ticket. Behind a
// connector it is 0.
func (s *Shop) Bypassed() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bypassed
}

// visitors refuses requests without the ticket that the connector adds.
func (s *Shop) visitors(next func(w http.ResponseWriter, r *http.Request, ticket string)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ticket := r.Header.Get("X-Proofline-Ticket")
		if ticket == "" {
			s.mu.Lock()
			s.bypassed++
			s.mu.Unlock()
			http.Error(w, "This page is only for visitors who come through proofline proxy.", http.StatusForbidden)
			return
		}
		next(w, r, ticket)
	}
}

// seat is a seat on the seats page.
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
	w.Header().Set("Proofline-Command", "release") // makes room for the next visitor
	http.Redirect(w, r, "/orders/"+order.ID, http.StatusSeeOther)
}

// sell sells the wanted seat, or the first free one if wanted is empty.
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

// show renders a page.
func (s *Shop) show(w http.ResponseWriter, name string, data any) {
	var page strings.Builder
	if err := pages.ExecuteTemplate(&page, name, data); err != nil {
		http.Error(w, "The page cannot be shown.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, page.String())
}
