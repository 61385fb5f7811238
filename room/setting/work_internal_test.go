package setting

import "testing"

func TestWorkCosts(t *testing.T) {
	const want = "20 take an old phone 4.2s, a laptop 520ms, and a graphics card 100µs"
	if got := workCosts(20); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
