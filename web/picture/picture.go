// Package picture draws Proofline's icon as PNG images, for places where browsers and messengers do
// not accept SVG.
package picture

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"image/png"
	"math"
)

// Sizes of the pictures, in pixels.
const (
	TouchSize                 = 180 // icon on a phone's home screen
	tabSize                   = 32  // icon in a tab of an old browser
	PreviewWidth              = 1200
	PreviewHeight             = 630
	grid                      = 32 // width of icon.svg, in units
	previewScale              = 15 // pixels per unit
	corner                    = 7  // radius of the icon's corners
	strokeRadius, placeRadius = 2, 3.5
)

var (
	blue  = color.NRGBA{0x1d, 0x4e, 0xd8, 0xff}
	white = color.NRGBA{0xff, 0xff, 0xff, 0xff}
)

// shape is part of a picture, as a function: how far outside the shape a point is.
type shape struct {
	distance func(x, y float64) float64
	ink      color.NRGBA
	opacity  float64
}

// capsule is a horizontal line with round ends; a disc if both ends are equal.
func capsule(from, to, y, radius, opacity float64) shape {
	return shape{func(px, py float64) float64 {
		return math.Hypot(px-min(max(px, from), to), py-y) - radius
	}, white, opacity}
}

// mark is the drawing of icon.svg: a line of people, and the person whose turn it is.
func mark() []shape {
	const middle = grid / 2
	first, second := capsule(7, 12, middle, strokeRadius, .55), capsule(15, 20, middle, strokeRadius, .55)
	line := first // as one shape, so that nothing is painted twice where the parts meet
	line.distance = func(x, y float64) float64 { return min(first.distance(x, y), second.distance(x, y)) }
	return []shape{line, capsule(24, 24, middle, placeRadius, 1)}
}

// Touch returns the icon for a phone's home screen. Phones round its corners.
func Touch() []byte {
	return encode(draw(TouchSize, TouchSize, TouchSize/float64(grid), 0, 0, mark()))
}

// Tab returns favicon.ico.
func Tab() []byte {
	m := draw(tabSize, tabSize, tabSize/float64(grid), 0, 0, mark())
	const half = float64(grid) / 2
	for i := range tabSize * tabSize {
		x, y := math.Abs(float64(i%tabSize)+.5-half), math.Abs(float64(i/tabSize)+.5-half)
		outside := math.Hypot(max(x-half+corner, 0), max(y-half+corner, 0)) - corner
		m.Pix[4*i+3] = uint8(255 * cover(outside))
	}
	image := encode(m)
	head := []byte{0, 0, 1, 0, 1, 0, tabSize, tabSize, 0, 0, 1, 0, 32, 0} // one image with 32 bits per pixel
	head = binary.LittleEndian.AppendUint32(head, uint32(len(image)))     //nolint:gosec // some hundred bytes
	head = binary.LittleEndian.AppendUint32(head, uint32(len(head)+4))    //nolint:gosec // 22
	return append(head, image...)
}

// Preview returns the picture that messengers show with a link: a line that stretches from far away
// to the person whose turn it is.
func Preview() []byte {
	const width, height, middle = PreviewWidth / previewScale, PreviewHeight / previewScale,
		PreviewHeight / previewScale / 2.0
	shapes := []shape{capsule(width-18, width-18, middle, 1.6*placeRadius, 1)}
	for i := range 8 {
		to := float64(width - 32 - 9*i)
		shapes = append(shapes, capsule(to-4.5, to, middle, strokeRadius, .62*math.Pow(.8, float64(i))))
	}
	ring := capsule(width-18, width-18, middle, 0, .35)
	ring.distance = func(x, y float64) float64 {
		return math.Abs(math.Hypot(x-(width-18), y-middle)-2.7*placeRadius) - .35
	}
	return encode(draw(PreviewWidth, PreviewHeight, previewScale, 0, (float64(PreviewHeight)/previewScale-height)/2,
		append(shapes, ring)))
}

// draw paints shapes on blue; scale is in pixels per unit, left and top are the corner in units.
func draw(width, height int, scale, left, top float64, shapes []shape) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for py := range height {
		for px := range width {
			c := blue
			for _, s := range shapes {
				d := s.distance((float64(px)+.5)/scale-left, (float64(py)+.5)/scale-top)
				c = mix(c, s.ink, s.opacity*cover(d*scale))
			}
			m.SetNRGBA(px, py, c)
		}
	}
	return m
}

// cover returns the share of a pixel inside a shape whose border is at the given distance.
func cover(distance float64) float64 { return min(max(.5-distance, 0), 1) }

func mix(a, b color.NRGBA, t float64) color.NRGBA {
	between := func(a, b uint8) uint8 { return uint8(math.Round(float64(a) + t*(float64(b)-float64(a)))) }
	return color.NRGBA{between(a.R, b.R), between(a.G, b.G), between(a.B, b.B), 255}
}

func encode(m image.Image) []byte {
	var out bytes.Buffer
	_ = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, m) // cannot fail: valid size, in memory
	return out.Bytes()
}
