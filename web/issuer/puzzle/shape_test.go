package puzzle

import (
	"fmt"
	"math"
	"math/cmplx"
	"strings"
	"testing"
)

// shapeOf says what a drawing shows, by how often its line comes near the middle. It is what a program has to do that
// solves these puzzles.
func shapeOf(t *testing.T, path string) string {
	t.Helper()
	var line []complex128
	var middle complex128
	for rest := strings.TrimSuffix(strings.TrimPrefix(path, "M"), "Z"); rest != ""; {
		var x, y float64
		if _, err := fmt.Sscan(rest, &x, &y); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if x < 0 || x > PictureSize || y < 0 || y > PictureSize {
			t.Fatalf("%v %v is outside of the picture", x, y)
		}
		line = append(line, complex(x, y))
		middle += complex(x, y) / pathPoints
		rest = strings.SplitN(rest, " ", 3)[2]
	}
	const steps = 360
	var distance [steps]float64
	for i, from := range line {
		to := line[(i+1)%len(line)]
		for part := range 40 { // closer than a degree
			at := from + (to-from)*complex(float64(part)/40, 0) - middle
			distance[int((cmplx.Phase(at)/(2*math.Pi)+1)*steps)%steps] = cmplx.Abs(at)
		}
	}
	wave := func(n int) float64 {
		var sum complex128
		for i, d := range distance {
			sum += cmplx.Rect(d, 2*math.Pi*float64(i*n)/steps)
		}
		return cmplx.Abs(sum)
	}
	mean := wave(0)
	three, four, five := wave(3)/mean, wave(4)/mean, wave(5)/mean
	switch largest := max(three, four, five); {
	case largest < 0.02:
		return "puzzle.circles"
	case largest == three:
		return "puzzle.triangles"
	case largest == five:
		return "puzzle.stars"
	case four > 0.09:
		return "puzzle.crosses"
	default:
		return "puzzle.squares"
	}
}
