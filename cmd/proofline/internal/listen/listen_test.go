package listen

import (
	"net"
	"testing"
)

func TestAddress(t *testing.T) {
	for text, want := range map[string]string{
		"127.0.0.1:8080": "127.0.0.1:8080", "0.0.0.0:8080": "localhost:8080", "[::]:8080": "localhost:8080",
		"[::1]:8080": "[::1]:8080", "192.0.2.1:80": "192.0.2.1:80",
	} {
		a, err := net.ResolveTCPAddr("tcp", text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Address(a); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
