package connector_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/proofline/proofline/connector"
	"github.com/proofline/proofline/connector/rules"
)

// A shop lets visitors of its ticket pages wait.
func Example() {
	site, err := rules.Parse([]byte(`{
		"version": 1,
		"rooms": {"sale": {"url": "https://queue.example.com/r/sale"}},
		"rules": [{"name": "tickets", "when": {"path": {"prefix": "/tickets"}}, "action": "queue sale"}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	c, err := connector.New(connector.Options{
		Site: site,
		Key:  []byte("32 random bytes, the same on all"), // os.Getenv("CONNECTOR_KEY")
		// The room in this example does not respond; a real program does not need this.
		Client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) { return nil, os.ErrDeadlineExceeded })},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()
	shop := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if v, ok := connector.VisitorOf(r.Context()); ok {
			fmt.Fprintln(w, "Hello, ticket", v.Ticket)
		}
		fmt.Fprintln(w, "shop")
	})
	guarded := c.Middleware(shop) // http.ListenAndServe(":8080", guarded)

	w := httptest.NewRecorder()
	guarded.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/about", nil))
	fmt.Print(w.Body)
	// Output: shop
}

// Rules kept by the server are signed, and the connector reports to the server.
func ExampleNew_signed() {
	_, err := connector.New(connector.Options{
		Source: &connector.Source{
			URL:     "https://queue.example.com/v1/sites/shop/rules",
			SiteKey: "queue.example.com/o/main", // cut short
			Keep:    "/var/lib/shop/rules",
		},
		Token: os.Getenv("PROOFLINE_TOKEN"),
		Key:   []byte("32 random bytes, the same on all"),
	})
	fmt.Println(errors.Is(err, connector.ErrSiteKey))
	// Output: true
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A site ends the session of a visitor who has bought, so that the next one is called.
func Example_release() {
	shop := http.NewServeMux()
	shop.HandleFunc("POST /tickets/bought", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(connector.CommandHeader, "release")
		fmt.Fprintln(w, "thank you")
	})
}
