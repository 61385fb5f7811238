package rooms_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/proofline/proofline/console/control"
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
	voided         map[string]bool

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

// Proof implements [room.Issuer].
func (o *ownIssuer) Proof(string, credential.Method) (setting.Proof, string) {
	return setting.ProofCode, ""
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

// Codes implements [control.Issuer]. The first code is used.
func (o *ownIssuer) Codes(context.Context, string, string) ([]control.CodeBatch, error) {
	if o.members != nil {
		return nil, control.ErrMembers
	}
	if o.made == 0 {
		return nil, nil
	}
	return []control.CodeBatch{{Made: time.Date(2026, 5, 4, 9, 30, 0, 0, time.UTC), Unused: o.made - 1 - len(o.voided),
		Used: 1, Void: len(o.voided)}}, nil
}

// VoidCodes implements [control.Issuer].
func (o *ownIssuer) VoidCodes(_ context.Context, slug, method string, which control.CodesToVoid,
	check bool) (v control.VoidedCodes, err error) {
	if which.Batch > 1 {
		return v, control.ErrNoBatch
	}
	if which.Batch == 1 {
		for n := range o.made {
			which.Codes = append(which.Codes, fmt.Sprintf("%s-%s-%d", slug, method, n+1))
		}
	}
	for _, code := range which.Codes {
		number, err := strconv.Atoi(code[strings.LastIndexByte(code, '-')+1:])
		switch {
		case err != nil || number > o.made:
			v.Unknown++
		case number == 1:
			v.Used++
		case o.voided[code]:
			v.Before++
		default:
			if v.Voided++; !check {
				o.voided[code] = true
			}
		}
	}
	return v, nil
}

// TestCodes makes codes in the console: the answer is a file, and nothing else has them. A copy of the room has keys and
// pages of its own.
func TestCodes(t *testing.T) {
	t.Parallel()
	const path = "/console/rooms/sale/codes"
	s := consoletest.New(t)
	own := &ownIssuer{key: issuertest.Signed("presale", 0).Method.Key, puzzleKey: issuertest.Signed("human", 1).Method.Key, voided: map[string]bool{}}
	s.Control.Issuer, s.Control.Rooms.Issuer = own, own
	other := issuertest.Signed("club", 0).Method
	other.Key = "58" + hex.EncodeToString([]byte(strings.Repeat("\x66", 31)))
	opens := time.Date(2036, 5, 1, 8, 0, 0, 0, time.UTC)
	r := s.Create(consoletest.Owner, room.Config{Slug: "sale", Opens: &opens, Settings: room.Settings{TimeZone: "Europe/Vienna"},
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
	s.Post(consoletest.Operator, path, "method", "presale", "count", "1", "do", "sheet").Want(http.StatusOK).
		Has("<b>sale-presale-3</b>", "<small>Opens 1 May 2036, 10:00 (Europe/Vienna)</small>", `<use href="#qr"/>`, `<symbol id="qr"`, "<small>"+r.URL+"</small>")
	own.made = 2
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

	// Codes are voided: first the page says what that does, and the second form does it.
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("Codes for presale", "<dt>Used</dt><dd>1</dd>",
		`aria-label="Void batch 1 of presale"`, "May 2026")
	void := path + "/void"
	s.Post(consoletest.Operator, void, "method", "presale", "text", " \n").Want(http.StatusBadRequest).Has("The list has no code.")
	s.Post(consoletest.Operator, void, "method", "presale", "batch", "2").Want(http.StatusBadRequest)
	if a := s.Post(consoletest.Operator, void, "method", "club", "batch", "1", "confirmed", "1"); a.Status < 400 {
		t.Errorf("codes of another issuer: %d", a.Status)
	}
	s.Post(consoletest.Viewer, void, "method", "presale", "batch", "1").Want(http.StatusForbidden)
	list := []string{"method", "presale", "text", "name,code\nA,sale-presale-2\nB,sale-presale-1\nC,other"}
	s.Post(consoletest.Operator, void, list...).Want(http.StatusOK).Has("Void 1 code of presale?", "<dt>Used already</dt><dd>1</dd>",
		"<dt>Unknown or repeated</dt><dd>1</dd>", "Void 1 code<", `value="name,code`)
	if len(own.voided) != 0 {
		t.Error("the question voids codes")
	}
	s.Post(consoletest.Operator, void, append(list, "confirmed", "1")...).Want(http.StatusOK).Has("1 code of presale is void")
	if len(own.voided) != 1 {
		t.Errorf("void are %v", own.voided)
	}
	s.Post(consoletest.Operator, void, "method", "presale", "batch", "1").Want(http.StatusOK).Has("Void 0 codes of presale?", "There is nothing to void.",
		"<dt>Void before</dt><dd>1</dd>")
	s.Get(consoletest.Operator, path).Want(http.StatusOK).Has("<dt>Void</dt><dd>1</dd>").Lacks("Void batch 1")
	s.Get(consoletest.Operator, "/console/activity?object=sale").Want(http.StatusOK).Has("voided codes for visitors").Lacks("sale-presale-2")

	draft, err := s.Control.Drafts.Duplicate(t.Context(), consoletest.Actor(consoletest.Operator), "sale")
	if err != nil {
		t.Fatal(err)
	}
	if c := draft.Config(); c.Methods[0].Key != "own" || c.Methods[1].Key != other.Key || c.Methods[2].Key != "own-puzzle" || len(c.Issuers) != 0 || len(draft.Problems) != 0 {
		t.Errorf("the copy has %+v, %v, problems %v", c.Methods, c.Issuers, draft.Problems)
	}
}
