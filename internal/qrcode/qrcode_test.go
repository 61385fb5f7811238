package qrcode

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"rsc.io/qr"
)

var run = regexp.MustCompile(`^M(\d+) (\d+)h(\d+)v1h-(\d+)z`)

// TestEncode draws the path and compares every module with the code.
func TestEncode(t *testing.T) {
	t.Parallel()
	const text = "https://queue.example.com/r/evening-concert"
	got, err := Encode(text)
	if err != nil {
		t.Fatal(err)
	}
	want, err := qr.Encode(text, qr.M)
	if err != nil {
		t.Fatal(err)
	}
	dark := map[[2]int]bool{}
	for rest := got.Path; rest != ""; {
		parts := run.FindStringSubmatch(rest)
		if parts == nil {
			t.Fatalf("the path continues with %.40q", rest)
		}
		var n [4]int
		for i := range n {
			n[i], _ = strconv.Atoi(parts[i+1])
		}
		for x := range n[2] {
			dark[[2]int{n[0] + x, n[1]}] = true
		}
		rest = rest[len(parts[0]):]
	}
	if got.Size != want.Size+2*quietZone {
		t.Errorf("size %d, want %d and a border of %d", got.Size, want.Size, quietZone)
	}
	for y := range got.Size {
		for x := range got.Size {
			if dark[[2]int{x, y}] != want.Black(x-quietZone, y-quietZone) {
				t.Fatalf("the module %d, %d is wrong", x, y)
			}
		}
	}
	if _, err := Encode(strings.Repeat("x", 5000)); err == nil {
		t.Error("a text that is too long has a code")
	}
}
