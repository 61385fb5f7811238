package puzzle

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// pictures asks for the drawings of one shape among others.
type pictures struct{}

// pictureOptions is the number of drawings in a puzzle.
const pictureOptions = 12

// Picture is a drawing of one line, closed, on a square of [PictureSize] units.
type Picture struct {
	Path   string // the d attribute of an SVG path
	Filled bool
}

// PictureSize is the width and height of a picture.
const PictureSize = 200

// pathPoints is the number of points of every drawing, whatever it shows.
const pathPoints = 72

// shapes has the message with the question for each shape, and its corners as angles, in turns, and distances from the
// middle.
var shapes = []struct {
	question string
	corners  []polar
}{
	{"puzzle.circles", regular(pathPoints, 1, 1)},
	{"puzzle.triangles", regular(3, 1, 1)},
	{"puzzle.squares", regular(4, 1, 1)},
	{"puzzle.stars", regular(10, 1, 0.42)},
	{"puzzle.crosses", cross()},
}

type polar struct{ turn, distance float64 }

// regular returns corners at equal angles, at two distances by turns.
func regular(corners int, distances ...float64) (list []polar) {
	for i := range corners {
		list = append(list, polar{float64(i) / float64(corners), distances[i%len(distances)]})
	}
	return list
}

// cross returns the corners of a cross with arms of equal length.
func cross() (list []polar) {
	const half = 0.06 // of an arm's width, in turns: the inner corners are where arms meet
	inner := math.Sqrt2 * math.Sin(2*math.Pi*half)
	for arm := range 4 {
		middle := float64(arm) / 4
		list = append(list, polar{middle - half, 1}, polar{middle + half, 1}, polar{middle + 0.125, inner})
	}
	return list
}

func (pictures) make(r *rand.Rand, say Say) *Puzzle {
	fits, asked := mark(r, pictureOptions), r.IntN(len(shapes))
	p := &Puzzle{Question: say(shapes[asked].question), fits: fits}
	for i := range pictureOptions {
		shape := asked
		if !fits.Has(i) {
			shape = (asked + 1 + r.IntN(len(shapes)-1)) % len(shapes)
		}
		p.Options = append(p.Options, Option{Label: say("puzzle.field", "number", strconv.Itoa(i+1)),
			Picture: &Picture{Path: path(r, shapes[shape].corners), Filled: r.IntN(2) == 0}})
	}
	return p
}

type point struct{ x, y float64 }

// path draws a shape by hand: turned, a little stretched, shaky, and begun anywhere.
func path(r *rand.Rand, corners []polar) string {
	const middle, shake = PictureSize / 2, 1.6
	turn, size := r.Float64(), between(r, 0.62, 0.88)*middle
	wide, high := between(r, 0.94, 1.06)*size, between(r, 0.94, 1.06)*size
	outline := make([]point, len(corners))
	for i, c := range corners {
		sin, cos := math.Sincos(2 * math.Pi * (c.turn + turn))
		outline[i] = point{wide * c.distance * cos, high * c.distance * sin}
	}
	line := along(outline, pathPoints)
	if r.IntN(2) == 0 {
		slices.Reverse(line)
	}
	begin := r.IntN(len(line))
	text := []byte("M")
	for i := range line {
		at := line[(begin+i)%len(line)]
		for _, v := range [2]float64{at.x, at.y} {
			text = strconv.AppendInt(text, int64(math.Round(middle+v+between(r, -shake, shake))), 10)
			text = append(text, ' ')
		}
	}
	return string(append(text, 'Z'))
}

// along returns n points at about equal distances on a closed outline, its corners among them.
func along(outline []point, n int) (line []point) {
	length := make([]float64, len(outline)+1) // up to each corner
	side := func(i int) (from, to point) { return outline[i], outline[(i+1)%len(outline)] }
	for i := range outline {
		from, to := side(i)
		length[i+1] = length[i] + math.Hypot(to.x-from.x, to.y-from.y)
	}
	for i := range outline {
		from, to := side(i)
		first := int(math.Round(length[i] / length[len(outline)] * float64(n)))
		end := int(math.Round(length[i+1] / length[len(outline)] * float64(n)))
		for k := range end - first {
			part := float64(k) / float64(end-first)
			line = append(line, point{from.x + part*(to.x-from.x), from.y + part*(to.y-from.y)})
		}
	}
	return line
}
