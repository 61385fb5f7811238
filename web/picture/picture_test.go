package picture

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// TestPictures checks the size of each picture, its background and the dot.
func TestPictures(t *testing.T) {
	for _, c := range []struct {
		name           string
		png            []byte
		width, height  int
		dotX, dotY     int
		opaque         bool
		groundX, noise int
	}{
		{"touch", Touch(), TouchSize, TouchSize, 135, 90, true, 90, 4_000},
		{"tab", Tab()[22:], tabSize, tabSize, 24, 16, false, 16, 1_500},
		{"preview", Preview(), PreviewWidth, PreviewHeight, 930, 307, true, 20, 30_000},
	} {
		m, err := png.Decode(bytes.NewReader(c.png))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if m.Bounds() != image.Rect(0, 0, c.width, c.height) || len(c.png) > c.noise {
			t.Errorf("%s is %v in %d bytes", c.name, m.Bounds(), len(c.png))
		}
		if got := color.NRGBAModel.Convert(m.At(c.dotX, c.dotY)); got != white {
			t.Errorf("%s: the dot is %v", c.name, got)
		}
		if got := color.NRGBAModel.Convert(m.At(c.groundX, 2)); got != blue {
			t.Errorf("%s: the ground is %v", c.name, got)
		}
		if _, _, _, a := m.At(0, 0).RGBA(); (a == 0xffff) != c.opaque {
			t.Errorf("%s: the corner has alpha %d", c.name, a)
		}
	}
}
