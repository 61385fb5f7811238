package room

import (
	"fmt"
	"testing"
	"time"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/audit/witness"
)

// TestForks: a witness that has seen another history is remembered, and one
// that only fails is not.
func TestForks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		err   error
		forks int
	}{
		{"inconsistent", fmt.Errorf("ask witness: %w", witness.ErrInconsistent), 1},
		{"larger", fmt.Errorf("ask witness: %w", &witness.ConflictError{Size: 7}), 1},
		{"away", witness.ErrUnavailable, 0},
		{"wrong answer", witness.ErrAnswer, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, s, _ := alone(t)
			s.cosigner = scripted(func(uint64, []byte) (audit.Cosignature, error) { return audit.Cosignature{}, c.err })
			for range 2 {
				s.asked = time.Time{}
				answered, err := s.submit(t.Context())
				s.note(t.Context(), answered, err)
			}
			forks := r.Forks()
			if g := r.Regression(); (g != nil) != (c.forks > 0) || g != nil && g.By != witnessPrefix+s.key.Name() {
				t.Errorf("the room is held for %v", g)
			}
			if len(forks) != c.forks {
				t.Fatalf("%d forks, want %d: %+v", len(forks), c.forks, forks)
			}
			if c.forks > 0 && (forks[0].Witness != s.key.Name() || forks[0].Detail == "" || time.Since(forks[0].Latest) > time.Minute) {
				t.Errorf("fork %+v", forks[0])
			}
		})
	}
}
