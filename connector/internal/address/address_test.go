package address

import "testing"

func TestIsSafe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"https://a.example/x": true, "http://127.0.0.1:1/x": true, "http://localhost/x": true, "http://[::1]/x": true,
		"http://a.example/x": false, "http://localhost.example/x": false, "http://127.0.0.1.example/": false, "ftp://127.0.0.1/": false, "": false, "https://": false,
	} {
		if IsSafe(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
