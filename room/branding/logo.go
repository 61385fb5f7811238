package branding

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image/jpeg"
	"image/png"
	"slices"
	"strings"
)

// Limits of a logo.
const (
	maxLogo   = 64 << 10 // bytes
	maxPixels = 2_000    // maximum number of pixels on each side
)

var (
	// errNoImage is returned for an unsupported format or a damaged image.
	errNoImage = errors.New("is not a PNG, JPEG or WebP image, or damaged")
	// errAnimated is returned for an animated WebP image.
	errAnimated = errors.New("is animated: use a still image")
)

// imageKind is an image format that every browser shows and that cannot contain scripts.
type imageKind struct {
	mediaType string
	begins    string
	// clean returns the image without metadata, such as where a photo was taken, and its size.
	clean func([]byte) (image []byte, width, height int, err error)
}

var imageKinds = []imageKind{
	{"image/png", "\x89PNG\r\n\x1a\n", cleanPNG},
	{"image/jpeg", "\xff\xd8\xff", cleanJPEG},
	{"image/webp", "RIFF", cleanWebP},
}

// cleanImage detects the format of an image, and removes its metadata.
func cleanImage(content []byte) (mediaType string, image []byte, err error) {
	if len(content) > maxLogo {
		return "", nil, fmt.Errorf("has %d KiB: at most %d are allowed", (len(content)+1023)>>10, maxLogo>>10)
	}
	for _, k := range imageKinds {
		if !strings.HasPrefix(string(content), k.begins) {
			continue
		}
		image, width, height, err := k.clean(content)
		if err != nil {
			return "", nil, err
		}
		if width < 1 || height < 1 || width > maxPixels || height > maxPixels {
			return "", nil, fmt.Errorf("has %d by %d pixels: at most %d a side are allowed", width, height, maxPixels)
		}
		return k.mediaType, image, nil
	}
	return "", nil, errNoImage
}

// ReadLogo converts an image file to a data URL without the file's metadata. The error is written for users.
func ReadLogo(file []byte) (string, error) {
	mediaType, image, err := cleanImage(file)
	if err != nil {
		return "", err
	}
	return DataURL(mediaType, image), nil
}

// DataURL returns the data URL of an image.
func DataURL(mediaType string, image []byte) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(image)
}

// ImageOf decodes a logo's data URL, and returns the image without its metadata; nil for an empty URL. The
// error is written for users.
func ImageOf(logo string) (mediaType string, image []byte, err error) {
	if logo == "" {
		return "", nil, nil
	}
	return readLogo(logo)
}

// readLogo decodes the data URL of a logo.
func readLogo(logo string) (mediaType string, image []byte, err error) {
	head, text, ok := strings.Cut(logo, ";base64,")
	named, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData || strings.ContainsAny(text, "\r\n") ||
		!slices.ContainsFunc(imageKinds, func(k imageKind) bool { return k.mediaType == named }) {
		return "", nil, errors.New("must be a data URL in base64 of a PNG, JPEG or WebP image, such as data:image/png;base64,...")
	}
	if len(text) > base64.StdEncoding.EncodedLen(maxLogo) {
		return "", nil, fmt.Errorf("has more than %d KiB", maxLogo>>10)
	}
	content, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", nil, errors.New("is not in base64")
	}
	if mediaType, image, err = cleanImage(content); err == nil && mediaType != named {
		return "", nil, fmt.Errorf("claims to be %s but is %s", named, mediaType)
	}
	return mediaType, image, err
}

// cleanPNG keeps the chunks that are drawn (https://www.w3.org/TR/png-3/#4Concepts.FormatChunks).
// Without the others, browsers assume sRGB and show only the first image of an animation.
func cleanPNG(content []byte) ([]byte, int, int, error) {
	const head, crc = 8, 4 // bytes around a chunk's data
	out, rest := slices.Clone(content[:8]), content[8:]
	for {
		if len(rest) < head+crc {
			return nil, 0, 0, errNoImage
		}
		size := uint64(binary.BigEndian.Uint32(rest)) + head + crc
		if size > uint64(len(rest)) {
			return nil, 0, 0, errNoImage
		}
		chunk := rest[:size]
		rest = rest[size:]
		switch string(chunk[4:head]) {
		case "IHDR", "PLTE", "IDAT", "tRNS", "gAMA", "cHRM", "sRGB", "sBIT", "bKGD":
			out = append(out, chunk...)
		case "IEND":
			out = append(out, chunk...)
			c, err := png.DecodeConfig(bytes.NewReader(out))
			if err != nil {
				return nil, 0, 0, errNoImage
			}
			return out, c.Width, c.Height, nil
		}
	}
}

// Markers of JPEG (https://www.w3.org/Graphics/JPEG/itu-t81.pdf, table B.1).
const (
	markerEOI   = 0xd9
	markerSOS   = 0xda
	markerAPP0  = 0xe0
	markerAPP14 = 0xee
	markerAPP15 = 0xef
	markerCOM   = 0xfe
)

// cleanJPEG keeps the segments needed for drawing. Among the application segments, those are JFIF, without its
// thumbnail, and Adobe, which gives the colour encoding.
func cleanJPEG(content []byte) ([]byte, int, int, error) {
	out, rest, frames := slices.Clone(content[:2]), content[2:], 0
	for {
		for len(rest) > 1 && rest[0] == 0xff && rest[1] == 0xff {
			rest = rest[1:] // fill bytes
		}
		if len(rest) < 2 || rest[0] != 0xff {
			return nil, 0, 0, errNoImage
		}
		marker := rest[1]
		if marker == markerEOI {
			out = append(out, rest[:2]...)
			break
		}
		if len(rest) < 4 {
			return nil, 0, 0, errNoImage
		}
		size := 2 + int(binary.BigEndian.Uint16(rest[2:]))
		if size < 4 || size > len(rest) {
			return nil, 0, 0, errNoImage
		}
		if isFrame(marker) {
			frames++
		}
		out = append(out, seen(marker, rest[:size])...)
		rest = rest[size:]
		if marker == markerSOS {
			n := scanLength(rest)
			out, rest = append(out, rest[:n]...), rest[n:]
		}
	}
	c, err := jpeg.DecodeConfig(bytes.NewReader(out))
	if err != nil || frames != 1 {
		return nil, 0, 0, errNoImage
	}
	return out, c.Width, c.Height, nil
}

// isFrame reports whether a segment contains the image's size.
func isFrame(marker byte) bool {
	return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc
}

// seen returns the part of a segment that is needed for drawing.
func seen(marker byte, segment []byte) []byte {
	const jfif = 18 // bytes of the segment without a thumbnail
	switch {
	case marker == markerAPP0 && len(segment) >= jfif && string(segment[4:9]) == "JFIF\x00":
		s := slices.Clone(segment[:jfif])
		binary.BigEndian.PutUint16(s[2:], jfif-2)
		s[16], s[17] = 0, 0
		return s
	case marker == markerAPP14 && strings.HasPrefix(string(segment[4:]), "Adobe"):
		return segment
	case marker >= markerAPP0 && marker <= markerAPP15, marker == markerCOM:
		return nil
	}
	return segment
}

// scanLength returns the length of a scan's pixels, which end at the first marker that does not belong to
// them.
func scanLength(rest []byte) int {
	for i := 0; i+1 < len(rest); i++ {
		if next := rest[i+1]; rest[i] == 0xff && next != 0 && next != 0xff && (next < 0xd0 || next > 0xd7) {
			return i
		}
	}
	return len(rest)
}

// cleanWebP keeps the chunks that are drawn (https://www.rfc-editor.org/rfc/rfc9649#section-2).
func cleanWebP(content []byte) ([]byte, int, int, error) {
	const head = 8 // bytes of a chunk's name and size
	if len(content) < 12 || string(content[8:12]) != "WEBP" {
		return nil, 0, 0, errNoImage
	}
	out, rest := slices.Clone(content[:12]), content[12:]
	width, height, images := 0, 0, 0
	for len(rest) >= head {
		size := uint64(binary.LittleEndian.Uint32(rest[4:]))
		if size+head > uint64(len(rest)) {
			return nil, 0, 0, errNoImage
		}
		padded := min(size+size%2+head, uint64(len(rest)))
		chunk, data := slices.Clone(rest[:padded]), rest[head:head+size]
		name := string(rest[:4])
		rest = rest[padded:]
		switch name {
		case "VP8X":
			if len(data) < 10 {
				return nil, 0, 0, errNoImage
			}
			const alpha = 0x10
			chunk[head] &= alpha
			width, height = max(width, 1+uint24(data[4:])), max(height, 1+uint24(data[7:]))
		case "VP8 ", "VP8L":
			w, h, ok := webpSize(name, data)
			if !ok {
				return nil, 0, 0, errNoImage
			}
			images++
			width, height = max(width, w), max(height, h)
		case "ALPH":
		case "ANIM", "ANMF":
			return nil, 0, 0, errAnimated
		default:
			continue
		}
		out = append(out, chunk...)
		if len(chunk)%2 == 1 {
			out = append(out, 0)
		}
	}
	if images != 1 {
		return nil, 0, 0, errNoImage
	}
	binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-head)) //nolint:gosec // not longer than the input
	return out, width, height, nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// webpSize reads the size from a bitstream (https://www.rfc-editor.org/rfc/rfc6386#section-9.1,
// https://www.rfc-editor.org/rfc/rfc9649#section-3.4).
func webpSize(name string, data []byte) (width, height int, ok bool) {
	const bits = 1<<14 - 1
	switch {
	case name == "VP8 " && len(data) >= 10 && data[0]&1 == 0 && string(data[3:6]) == "\x9d\x01\x2a":
		return int(binary.LittleEndian.Uint16(data[6:])) & bits, int(binary.LittleEndian.Uint16(data[8:])) & bits, true
	case name == "VP8L" && len(data) >= 5 && data[0] == 0x2f:
		n := binary.LittleEndian.Uint32(data[1:])
		return 1 + int(n&bits), 1 + int(n>>14&bits), true
	}
	return 0, 0, false
}
