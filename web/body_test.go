package web

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/internal/invalid"
)

// checkRefusal fails unless the error is a refusal with a reason.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var wrong *invalid.Error
	if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0) {
		t.Errorf("error %v, want the problem", err)
	}
}

// unescaped returns a JSON document without escapes.
func unescaped(body []byte) []byte {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	b, _ := json.Marshal(v) // of the value just read
	return b
}

func encodeSecret(secret [32]byte) []byte {
	return base64.RawURLEncoding.AppendEncode(nil, secret[:])
}

// FuzzMembers checks that the complete parser agrees with the fast one.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"ticket":"x"}`, `{"ticket":""}`, `{"ticket":"a\"}`, `{"ticket":"a"}"}`, `{"ticket": "x"}`, `{"ticket":"x","y":"z"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		texts, err := anyMembers(body, "ticket")
		checkRefusal(t, err)
		text := texts["ticket"]
		var v map[string]*string
		if err == nil && (json.Unmarshal(body, &v) != nil || len(v) > 1 || v["ticket"] != nil && *v["ticket"] != text) {
			t.Errorf("%q is read as %q", body, text)
		}
		if plain, ok := plainMember(body, "ticket"); ok && (err != nil || plain != text) {
			t.Errorf("%q: the short way says %q, the long way %q, %v", body, plain, text, err)
		}
	})
}

// FuzzTicketOf compares the join's parser with encoding/json and itself.
func FuzzTicketOf(f *testing.F) {
	v := newVisitor("fuzz")
	for _, seed := range []string{v.joinBody(), "", "{}", `{"ticket":null}`, `{"ticket":"\u0030"}`, `{"ticket":"a","ticket":"b"}`, `{"x":[{}]}`, "{\"ticket\":\"\xff\"}", `{"ticket":"` + v.ticket + `"} `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		own, secret, err := wishOf(body, "example.com/r/fuzz")
		checkRefusal(t, err)
		if err == nil && secret == "" && !bytes.Contains(unescaped(body), []byte(own.ticket.String())) {
			t.Errorf("%q is read as %v", body, own.ticket)
		}
	})
}

// FuzzWish checks that the complete parser of a join with credentials agrees with the fast one.
func FuzzWish(f *testing.F) {
	v := newVisitor("fuzz")
	good := v.showing("members", credential.Credential{Method: "club", Nullifier: make([]byte, 32), Evidence: []byte{1}})
	for _, seed := range []string{
		good, good + " ", strings.Replace(good, "lane", "Lane", 1), strings.Replace(good, `"members"`, "null", 1), strings.Replace(good, "{", `{"seats":2,`, 1),
		strings.Replace(good, "{", `{"seats":"2",`, 1), strings.Replace(good, "{", `{"seats":null,`, 1),
		strings.Replace(good, "method", "lane", 1), strings.Replace(good, "{", `{"lane":"x",`, 1), strings.Replace(good, "club", `cl\u0075b`, 1), strings.Replace(good, "[", "[null,", 1),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		slow, text, err := anyWish(body)
		checkRefusal(t, err)
		fast, ok := plainWish(body)
		slow.ticket = fast.ticket
		if ok && (err != nil || text != fast.ticket.String() || !reflect.DeepEqual(slow, fast)) {
			t.Errorf("%q: the short way says %+v, the long way %+v of %q, %v", body, fast, slow, text, err)
		}
	})
}

// TestJunk: a body that is no join costs about as much as reading it, and its answer is not much larger.
func TestJunk(t *testing.T) {
	var names strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&names, `,"%x":1`, i)
	}
	one := `{"method":"a","evidence":"00"},`
	for name, body := range map[string]string{
		"unknown members":  `{"x":1` + names.String() + `}`,
		"deep":             `{"lane":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}`,
		"many credentials": `{"credentials":[` + strings.Repeat("{},", 8_000) + `{}]}`,
		"too many":         `{"credentials":[` + strings.Repeat(one, 16) + one[:len(one)-1] + `]}`,
	} {
		var err error
		allocated := testing.AllocsPerRun(10, func() { _, _, err = wishOf([]byte(body), "example.com/r/x") })
		if n := len(invalid.Problems(err)); n == 0 || n > invalid.Max || allocated > 3_000 {
			t.Errorf("%s: %d problems, %.0f allocations", name, n, allocated)
		}
	}
}

// FuzzReadClaim does the same for the parser of claims.
func FuzzReadClaim(f *testing.F) {
	v := newVisitor("fuzz")
	for _, seed := range []string{v.claimBody(), "", "{}", `{"secret":"` + v.secret + `="}`, `{"secret":"` + v.secret[:40] + `\r\n"}`, `{"to":"https://x","secret":"` + v.secret + `"}`, `{"secret":"` + v.secret + `","to":null}`, `{"secret":"` + v.secret + `","to":"https://x","to_sig":"y"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		secret, to, err := readClaim(body)
		checkRefusal(t, err)
		if err != nil {
			return
		}
		var v map[string]*string
		if json.Unmarshal(body, &v) != nil || v["secret"] == nil || *v["secret"] != string(encodeSecret(secret)) || v["to"] != nil && *v["to"] != to.To || v["to_sig"] != nil && *v["to_sig"] != to.Sig {
			t.Errorf("%q is read as %x, to %+v", body, secret, to)
		}
	})
}
