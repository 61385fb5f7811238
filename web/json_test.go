package web

import (
	"encoding/json"
	"testing"
	"time"
)

// FuzzAppendText checks that encoding/json reads back what was written.
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

// FuzzAppendTime compares with the standard library.
func FuzzAppendTime(f *testing.F) {
	for _, seed := range []int64{0, -1, 951782400000, 1 << 41, 253402300799999} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, millis int64) {
		moment := time.UnixMilli(int64(uint64(millis) % 253402300800000)).UTC() // 1970 to 9999
		got := string(appendTime(nil, moment))
		if want := moment.Format("2006-01-02T15:04:05.000Z"); got != want {
			t.Errorf("%d is written as %s, want %s", millis, got, want)
		}
	})
}
