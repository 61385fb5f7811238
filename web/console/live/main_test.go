package live_test

import (
	"testing"

	"github.com/proofline/proofline/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, "fsync = off") }
