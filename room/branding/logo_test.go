package branding

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"strings"
	"testing"
)

// dataURL returns the data URL of an image, or of something that claims to be one.
func dataURL(mediaType, content string) string {
	return "data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString([]byte(content))
}

// picture returns an image with a dot.
func picture(width, height int) image.Image {
	img := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.White, color.Black})
	img.SetColorIndex(0, 0, 1)
	return img
}

func pngOf(width, height int) string {
	var b bytes.Buffer
	if err := png.Encode(&b, picture(width, height)); err != nil {
		panic(err)
	}
	return b.String()
}

func jpegOf(width, height int) string {
	var b bytes.Buffer
	if err := jpeg.Encode(&b, picture(width, height), nil); err != nil {
		panic(err)
	}
	return b.String()
}

// webpOf returns the header of a lossless WebP image, and some of its pixels.
func webpOf(width, height int, extra ...string) string {
	bits := binary.LittleEndian.AppendUint32(nil, uint32(width-1)|uint32(height-1)<<14)
	chunks := strings.Join(extra, "") + riff("VP8L", "\x2f"+string(bits)+"\x00\x01\x02")
	return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(4+len(chunks)))) + "WEBP" + chunks
}

func riff(name, data string) string {
	size := binary.LittleEndian.AppendUint32(nil, uint32(len(data)))
	return name + string(size) + data + strings.Repeat("\x00", len(data)%2)
}

// pngChunk returns a chunk of a PNG image.
func pngChunk(name, data string) string {
	body := name + data
	b := binary.BigEndian.AppendUint32(nil, uint32(len(data)))
	return string(binary.BigEndian.AppendUint32(append(b, body...), crc32.ChecksumIEEE([]byte(body))))
}

// withChunk inserts a chunk after the header of a PNG image.
func withChunk(img, chunk string) string { return img[:33] + chunk + img[33:] }

// segment returns a segment of a JPEG image.
func segment(marker byte, data string) string {
	return "\xff" + string([]byte{marker}) + string(binary.BigEndian.AppendUint16(nil, uint16(2+len(data)))) + data
}

const secret = "48.2082 N, 16.3738 E"

// TestMetadata checks that everything invisible is removed from a logo, and that the rest is the same image.
func TestMetadata(t *testing.T) {
	t.Parallel()
	plainPNG, plainJPEG := pngOf(3, 2), jpegOf(3, 2)
	jfif := segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x01\x01"+secret)
	extended := riff("VP8X", "\x2c\x00\x00\x00\x02\x00\x00\x01\x00\x00")
	for _, c := range []struct{ name, content, mediaType, want string }{
		{"PNG", plainPNG, "image/png", plainPNG},
		{"PNG with texts", withChunk(plainPNG, pngChunk("tEXt", secret)+pngChunk("eXIf", secret)+pngChunk("iTXt", secret)), "image/png", plainPNG},
		{"PNG with more behind", plainPNG + secret, "image/png", plainPNG},
		{"animated PNG", withChunk(plainPNG, pngChunk("acTL", secret)), "image/png", plainPNG},
		{"JPEG", plainJPEG, "image/jpeg", plainJPEG},
		{"JPEG with Exif", plainJPEG[:2] + segment(0xe1, "Exif\x00\x00"+secret) + segment(0xfe, secret) + segment(0xed, secret) + plainJPEG[2:], "image/jpeg", plainJPEG},
		{"JPEG with a thumbnail", plainJPEG[:2] + jfif + plainJPEG[2:], "image/jpeg", plainJPEG[:2] + segment(0xe0, "JFIF\x00\x01\x01\x00\x00\x01\x00\x01\x00\x00") + plainJPEG[2:]},
		{"JPEG with more behind", plainJPEG + secret, "image/jpeg", plainJPEG},
		{"WebP", webpOf(3, 2), "image/webp", webpOf(3, 2)},
		{"WebP with Exif", webpOf(3, 2, extended, riff("EXIF", secret+"x"), riff("XMP ", secret)), "image/webp", webpOf(3, 2, riff("VP8X", "\x00\x00\x00\x00\x02\x00\x00\x01\x00\x00"))},
	} {
		mediaType, got, err := cleanImage([]byte(c.content))
		if err != nil || mediaType != c.mediaType || string(got) != c.want {
			t.Errorf("%s: %s %v\n%q\nwant\n%q", c.name, mediaType, err, got, c.want)
		}
		if strings.Contains(string(got), secret) {
			t.Errorf("%s: the place is still in it", c.name)
		}
		if url, err := ReadLogo([]byte(c.content)); err != nil || url != dataURL(c.mediaType, c.want) {
			t.Errorf("%s as a logo: %s, %v", c.name, url, err)
		}
	}
}

// TestImagesRefused tries images that are too large or damaged, and files that are not images.
func TestImagesRefused(t *testing.T) {
	t.Parallel()
	img, photo := pngOf(3, 2), jpegOf(3, 2)
	fits := withChunk(img, pngChunk("tEXt", strings.Repeat("x", maxLogo-len(img)-12)))
	if _, _, err := cleanImage([]byte(fits)); len(fits) != maxLogo || err != nil {
		t.Errorf("%d bytes: %v", len(fits), err)
	}
	for _, side := range [][2]int{{maxPixels, 1}, {1, maxPixels}} {
		for _, content := range []string{pngOf(side[0], side[1]), jpegOf(side[0], side[1]), webpOf(side[0], side[1])} {
			if _, _, err := cleanImage([]byte(content)); err != nil {
				t.Errorf("%v: %v", side, err)
			}
		}
	}
	lossy := func(tag string) string {
		chunk := riff("VP8 ", tag+"\x00\x00\x9d\x01\x2a\x05\x00\x04\x00rest")
		return "RIFF" + string(binary.LittleEndian.AppendUint32(nil, uint32(4+len(chunk)))) + "WEBP" + chunk
	}
	if _, _, err := cleanImage([]byte(lossy("\x00"))); err != nil {
		t.Errorf("lossy WebP: %v", err)
	}
	for name, c := range map[string]struct{ content, want string }{
		"nothing":             {"", "damaged"},
		"a text":              {"logo", "damaged"},
		"SVG":                 {"<svg xmlns='http://www.w3.org/2000/svg'/>", "damaged"},
		"GIF":                 {"GIF89a", "damaged"},
		"one byte more":       {fits + "x", "65 KiB"},
		"wide PNG":            {pngOf(maxPixels+1, 1), "2001 by 1"},
		"high PNG":            {pngOf(1, maxPixels+1), "1 by 2001"},
		"wide JPEG":           {jpegOf(maxPixels+1, 1), "2001 by 1"},
		"high WebP":           {webpOf(1, maxPixels+1), "1 by 2001"},
		"WebP on a canvas":    {webpOf(1, 1, riff("VP8X", "\x10\x00\x00\x00\xff\xff\xff\x00\x00\x00")), "16777216 by 1"},
		"animated WebP":       {webpOf(1, 1, riff("ANIM", "......")), "animated"},
		"two in one WebP":     {webpOf(1, 1, riff("VP8L", "\x2f\x00\x00\x00\x00")), "damaged"},
		"WebP between images": {lossy("\x01"), "damaged"},
		"WebP without pixels": {"RIFF\x04\x00\x00\x00WEBP", "damaged"},
		"PNG without end":     {img[:len(img)-12], "damaged"},
		"PNG without head":    {img[:8] + pngChunk("IEND", ""), "damaged"},
		"cut PNG":             {img[:20], "damaged"},
		"JPEG without end":    {photo[:len(photo)-2], "damaged"},
		"JPEG without image":  {"\xff\xd8\xff\xd9", "damaged"},
		"two sizes in a JPEG": {photo[:2] + segment(0xc0, "\x08\x00\x01\x00\x01\x01\x01\x11\x00") + photo[2:], "damaged"},
		"cut JPEG":            {photo[:30], "damaged"},
	} {
		if _, _, err := cleanImage([]byte(c.content)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

func FuzzCleanImage(f *testing.F) {
	for _, content := range []string{
		pngOf(2, 2), jpegOf(2, 2), webpOf(2, 2), withChunk(pngOf(2, 2), pngChunk("tEXt", secret)),
		webpOf(3, 2, riff("VP8X", "\x2c\x00\x00\x00\x02\x00\x00\x01\x00\x00"), riff("EXIF", secret)), jpegOf(2, 2) + secret,
	} {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		mediaType, img, err := cleanImage(content)
		if err != nil {
			return
		}
		if len(img) > len(content)+2 {
			t.Errorf("%d bytes of %d", len(img), len(content))
		}
		again, clean, err := cleanImage(img)
		if err != nil || again != mediaType || !bytes.Equal(clean, img) {
			t.Errorf("cleaned again: %s, %v", again, err)
		}
	})
}
