package web

import (
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/web/console/shell"
)

// TestConsoleProblems checks that refusals by the organizers' pages are not reported as server errors.
func TestConsoleProblems(t *testing.T) {
	t.Parallel()
	s := newTenants(t)
	const form = "Content-Type: application/x-www-form-urlencoded"
	s.do(http.MethodPost, "/console/sign-in", "email=a", form, "Sec-Fetch-Site: cross-site").want(http.StatusForbidden)
	s.do(http.MethodPost, "/console/sign-in", "email="+strings.Repeat("a", 300<<10), form).want(http.StatusRequestEntityTooLarge)
	s.get("/console/rooms/sale/live", "Accept: text/event-stream").problem(http.StatusUnauthorized, "unauthorized")
	s.do(http.MethodPost, "/console/rooms/sale/brand/check", "", "Accept: application/json", "Origin: https://example.org").problem(http.StatusForbidden, "cross-origin")
	if p := s.problems.describe(shell.ErrConfirm); p.Status != http.StatusForbidden {
		t.Errorf("to confirm first: %d", p.Status)
	}
}
