package web

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"

	"github.com/proofline/proofline/room"
)

// checkRefusal fails unless an error is a refusal that says what is wrong.
func checkRefusal(t *testing.T, err error) {
	t.Helper()
	var wrong *room.InvalidError
	if err != nil && (!errors.As(err, &wrong) || len(wrong.Problems) == 0) {
		t.Errorf("error %v, want what is wrong", err)
	}
}

// unescaped returns a JSON document without escapes.
func unescaped(body []byte) []byte {
	var v any
	if json.Unmarshal(body, &v) != nil {
		return nil
	}
	b, _ := json.Marshal(v) // of what was just read
	return b
}

func encodeSecret(secret [32]byte) []byte {
	return base64.RawURLEncoding.AppendEncode(nil, secret[:])
}

// FuzzMembers: whatever the short parser takes, the complete one reads alike.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{`{"ticket":"x"}`, `{"ticket":""}`, `{"ticket":"a\"}`, `{"ticket":"a"}"}`, `{"ticket": "x"}`, `{"ticket":"x","y":"z"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		text, err := anyMember(body, "ticket")
		checkRefusal(t, err)
		var v map[string]*string
		if err == nil && (json.Unmarshal(body, &v) != nil || len(v) > 1 || v["ticket"] != nil && *v["ticket"] != text) {
			t.Errorf("%q is read as %q", body, text)
		}
		if plain, ok := plainMember(body, "ticket"); ok && (err != nil || plain != text) {
			t.Errorf("%q: the short way says %q, the long way %q, %v", body, plain, text, err)
		}
	})
}

// FuzzAppendText: what is written is read back by encoding/json.
func FuzzAppendText(f *testing.F) {
	for _, seed := range []string{"", "a", "\"\\\n\x00\x1f\x7f", "é\u2028😀", "\xff\xc3", "\ufffd", "— example.com/r/x AbC+/=\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		written := appendText(nil, text)
		var got, want string
		if err := json.Unmarshal(written, &got); err != nil {
			t.Fatalf("%q is written as %s: %v", text, written, err)
		}
		reference, _ := json.Marshal(text) // of a string
		if err := json.Unmarshal(reference, &want); err != nil || got != want {
			t.Errorf("%q is read back as %q, want %q", text, got, want)
		}
		if bytes := appendText(nil, []byte(text)); string(bytes) != string(written) {
			t.Errorf("%q differs as bytes: %s and %s", text, bytes, written)
		}
	})
}
