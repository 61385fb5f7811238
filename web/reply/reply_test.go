package reply

import "testing"

func TestAcceptsGzip(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "br, gzip": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0.001": true,
		"identity": false, "x-gzip": false, "gzip;q=1": true, "*": false, "deflate,GZip ; q=1.0": true,
	} {
		if got := acceptsGzip([]string{header}); got != want {
			t.Errorf("%q: %t, want %t", header, got, want)
		}
	}
	if !acceptsGzip([]string{"br", "gzip"}) {
		t.Error("gzip in the second header is not seen")
	}
}
