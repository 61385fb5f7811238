package rooms_test

import (
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/consoletest"
	"github.com/proofline/proofline/internal/issuertest"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/setting"
)

// ownIssuer is an issuer of the server's own with one key for all codes, and one for puzzles.
type ownIssuer struct {
	key, puzzleKey string
	made           int

	members  [][]string
	hasCodes bool
	mails    bool
	signsIn  bool
}

// Key implements [room.Issuer].
func (o *ownIssuer) Key(_ string, m credential.Method) (string, error) {
	if m.Key == "own-puzzle" {
		return o.puzzleKey, nil
	}
	return o.key, nil
}

// Page implements [room.Issuer].
func (o *ownIssuer) Page(slug, method string) string {
	return "https://example.com/issuer/" + slug + "." + method
}

// Lacks implements [room.Issuer].
func (o *ownIssuer) Lacks(key string) string {
	if key == setting.OwnMailKey && !o.mails {
		return "this server sends no mail"
	}
	if key == setting.OwnOIDCKey && !o.signsIn {
		return "this server has no sign-in provider"
	}
	return ""
}

// OwnKey implements [control.Issuer].
func (o *ownIssuer) OwnKey(_ string, m credential.Method) string {
	return map[string]string{o.key: setting.OwnKey, o.puzzleKey: setting.OwnPuzzleKey}[m.Key]
}

// AddCodes implements [control.Issuer].
func (o *ownIssuer) AddCodes(slug, method string, count int) (codes []string, total int, err error) {
	for range count {
		o.made++
		codes = append(codes, fmt.Sprintf("%s-%s-%d", slug, method, o.made))
	}
	return codes, o.made, nil
}

// TestCodes makes codes in the console: the answer is a file, and nothing else has them. A copy of the room has keys and
// pages of its own.
func TestCodes(t *testing.T) {
	t.Parallel()
	const path = "/console/rooms/sale/codes"
	s := consoletest.New(t)
	own := &ownIssuer{key: issuertest.Signed("presale", 0).Method.Key, puzzleKey: issuertest.Signed("human", 1).Method.Key}
	s.Control.Issuer, s.Control.Rooms.Issuer = own, own
	other := issuertest.Signed("club", 0).Method
	other.Key = "58" + hex.EncodeToString([]byte(strings.Repeat("\x66", 31)))
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale",
		Methods: []credential.Method{{Name: "presale", Kind: credential.Signed, Key: "own", Limit: 9}, other, {Name: "human", Kind: credential.Signed, Key: "own-puzzle"}},
		Lanes:   []room.LaneRule{{Name: "early", Weight: 1, Needs: []string{"presale"}}}})
	if settings, _ := r.Settings(); fmt.Sprint(settings.Issuers) != "[presale https://example.com/issuer/sale.presale human https://example.com/issuer/sale.human]" ||
		r.Policy().Methods[0].Key != own.key || r.Policy().Methods[2].Key != own.puzzleKey {
		t.Errorf("%+v, %+v", settings.Issuers, r.Policy().Methods)
	}
	s.Get(consoletest.Operator, "/console/rooms/sale/settings").Want(http.StatusOK).Has(path, "presale https://example.com/issuer/sale.presale")
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("<option>presale</option>").Lacks("club", "<option>human")
	s.Post(consoletest.Operator, path, "method", "presale", "count", "many").Want(http.StatusBadRequest).Has("must be a whole number", `value="many"`)
	s.Post(consoletest.Operator, path, "method", "presale", "count", "100001").Want(http.StatusBadRequest).Has("from 1 to 100000")
	a := s.Post(consoletest.Operator, path, "method", "presale", "count", "2").Want(http.StatusOK)
	if a.Body != "code\r\nsale-presale-1\r\nsale-presale-2\r\n" || a.Header.Get("Content-Disposition") != `attachment; filename="sale-presale-codes.csv"` {
		t.Errorf("%v %q", a.Header, a.Body)
	}
	if a := s.Post(consoletest.Operator, path, "method", "club", "count", "2"); a.Status < 400 || own.made != 2 {
		t.Errorf("codes for another issuer's method: %d", a.Status)
	}
	if a := s.Post(consoletest.Operator, path, "method", "human", "count", "2"); a.Status < 400 || own.made != 2 {
		t.Errorf("codes for a method with puzzles: %d", a.Status)
	}
	s.Post(consoletest.Viewer, path, "method", "presale", "count", "2").Want(http.StatusForbidden)
	s.Get(consoletest.Operator, "/console/activity?object=sale").Want(http.StatusOK).Has("made codes for visitors").Lacks("sale-presale-1")
	if settings, _ := r.Settings(); len(settings.Issuers) != 2 {
		t.Error("making codes changes the settings")
	}

	draft, err := s.Control.Drafts.Duplicate(t.Context(), consoletest.Actor(consoletest.Operator), "sale")
	if err != nil {
		t.Fatal(err)
	}
	if c := draft.Config(); c.Methods[0].Key != "own" || c.Methods[1].Key != other.Key || c.Methods[2].Key != "own-puzzle" || len(c.Issuers) != 0 || len(draft.Problems) != 0 {
		t.Errorf("the copy has %+v, %v, problems %v", c.Methods, c.Issuers, draft.Problems)
	}
}
