package shell

import "testing"

func TestSafeNext(t *testing.T) {
	t.Parallel()
	for wanted, want := range map[string]string{
		"": "/console", "/console": "/console", "/console/rooms?a=b": "/console/rooms?a=b",
		"//evil.example": "/console", "https://evil.example/console": "/console", "/console\\evil": "/console", "/consolex": "/console",
		"/other": "/console", "javascript:alert(1)": "/console",
	} {
		if got := SafeNext(wanted); got != want {
			t.Errorf("%q leads to %q, want %q", wanted, got, want)
		}
	}
}
