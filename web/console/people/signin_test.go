package people

import "testing"

func TestInsecure(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]bool{
		"https://queue.example.com": false, "http://queue.example.com": true, "http://192.0.2.1:8080": true,
		"http://localhost:8080": false, "http://127.0.0.1:8080": false, "http://[::1]:8080": false, "": false,
	} {
		if got := isInsecure(address); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
}
