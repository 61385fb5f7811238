package shop

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// ask sends a request as a connector would forward it; with an empty ticket, without the header.
func ask(t *testing.T, s *Shop, ticket, method, target string, form url.Values) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if ticket != "" {
		r.Header.Set("X-Proofline-Ticket", ticket)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestShop(t *testing.T) {
	t.Parallel()
	s := New(2)
	if w := ask(t, s, "", "GET", "/", nil); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "/.proofline/wait.js") ||
		w.Header().Get("Content-Security-Policy") != policy {
		t.Errorf("home: status %d, %s", w.Code, w.Body)
	}
	if w := ask(t, s, "one", "GET", "/tickets", nil); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "<code>one</code>") ||
		strings.Count(w.Body.String(), `type="radio"`) != 2*SeatsInRow {
		t.Errorf("seats: status %d, %s", w.Code, w.Body)
	}
	if w := ask(t, s, `<b>"`, "GET", "/tickets", nil); strings.Contains(w.Body.String(), "<b>") {
		t.Error("the page contains a ticket's markup")
	}
	bought := ask(t, s, "one", "POST", "/tickets/buy", url.Values{"seat": {"B7"}})
	to := bought.Header().Get("Location")
	if bought.Code != http.StatusSeeOther || bought.Header().Get("Proofline-Command") != "release" ||
		!strings.HasPrefix(to, "/orders/") {
		t.Fatalf("buy: status %d, header %v", bought.Code, bought.Header())
	}
	if w := ask(t, s, "", "GET", to, nil); w.Code != http.StatusOK ||
		!strings.Contains(w.Body.String(), "<strong>B7</strong>") {
		t.Errorf("order: status %d, %s", w.Code, w.Body)
	}
	for want, form := range map[int]url.Values{
		http.StatusConflict:   {"seat": {"B7"}},
		http.StatusBadRequest: {"seat": {strings.Repeat("x", maxForm)}},
	} {
		if w := ask(t, s, "two", "POST", "/tickets/buy", form); w.Code != want ||
			w.Header().Get("Proofline-Command") != "" {
			t.Errorf("status %d, want %d; header %v", w.Code, want, w.Header())
		}
	}
	if w := ask(t, s, "two", "POST", "/tickets/buy", url.Values{"seat": {"Z1"}}); w.Code != http.StatusConflict ||
		len(s.Sold()) != 1 {
		t.Errorf("a seat that does not exist: status %d", w.Code)
	}
	if w := ask(t, s, "two", "POST", "/tickets/buy", nil); w.Code != http.StatusSeeOther ||
		s.Sold()[1] != (Order{s.Sold()[1].ID, "A1", "two"}) {
		t.Errorf("any seat: status %d, %+v", w.Code, s.Sold())
	}
	if w := ask(t, s, "two", "GET", "/tickets/left",
		nil); strings.TrimSpace(w.Body.String()) != fmt.Sprintf(`{"left":%d}`, 2*SeatsInRow-2) {
		t.Errorf("left: %s", w.Body)
	}
	if w := ask(t, s, "two", "GET", "/orders/else", nil); w.Code != http.StatusNotFound {
		t.Errorf("an unknown order: status %d", w.Code)
	}
	if n := s.Bypassed(); n != 0 {
		t.Errorf("%d requests bypassed the line, want none", n)
	}
	for i, target := range []string{"GET /tickets", "GET /tickets/left", "POST /tickets/buy"} {
		method, path, _ := strings.Cut(target, " ")
		if w := ask(t, s, "", method, path, nil); w.Code != http.StatusForbidden || s.Bypassed() != i+1 {
			t.Errorf("%s without a ticket: status %d, %d bypassed", target, w.Code, s.Bypassed())
		}
	}
}

// TestSell: concurrent purchases sell each seat once.
func TestSell(t *testing.T) {
	t.Parallel()
	s := New(30)
	var all sync.WaitGroup
	for i := range 30*SeatsInRow + 10 {
		all.Go(func() { s.sell("", fmt.Sprint(i)) })
	}
	all.Wait()
	seats, ids := map[string]bool{}, map[string]bool{}
	for _, o := range s.Sold() {
		seats[o.Seat], ids[o.ID] = true, true
	}
	if want := 30 * SeatsInRow; len(s.Sold()) != want || len(seats) != want || len(ids) != want || !seats["AD20"] {
		t.Errorf("%d orders of %d seats, %d ids", len(s.Sold()), len(seats), len(ids))
	}
}
