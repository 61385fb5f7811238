// Package qrcode draws QR codes as SVG paths.
package qrcode

import (
	"fmt"
	"strings"

	"rsc.io/qr"
)

// Code is a QR code, drawn in an SVG view box of Size by Size.
type Code struct {
	Size int
	Path string // path of the dark modules, for the attribute d
}

// quietZone is the white border, in modules, that scanners need.
const quietZone = 4

// Encode returns the QR code of a text, or an error if the text is too long.
func Encode(text string) (Code, error) {
	code, err := qr.Encode(text, qr.M)
	if err != nil {
		return Code{}, fmt.Errorf("draw QR code: %w", err)
	}
	var path strings.Builder
	for y := range code.Size {
		for x := 0; x < code.Size; x++ {
			from := x
			for x < code.Size && code.Black(x, y) {
				x++
			}
			if x > from {
				fmt.Fprintf(&path, "M%d %dh%dv1h-%dz", from+quietZone, y+quietZone, x-from, x-from)
			}
		}
	}
	return Code{code.Size + 2*quietZone, path.String()}, nil
}
