package sites

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/web/console/format"
)

// diffLine is a line of a comparison.
type diffLine struct {
	Kind string // "same", "added", "removed", or "skipped" for several lines
	Text string
}

const (
	contextLines = 3
	maxDiffLines = 10_000    // maximum number of lines shown
	maxDiffCells = 4_000_000 // maximum size of a comparison's table; larger changes are shown as removed and added
)

// diffOf compares the lines of two texts. It returns nil if they are equal.
func diffOf(before, after string) []diffLine {
	if before == after {
		return nil
	}
	a, b := linesOf(before), linesOf(after)
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	end := 0
	for end < len(a)-from && end < len(b)-from && a[len(a)-1-end] == b[len(b)-1-end] {
		end++
	}
	var all []diffLine
	add := func(kind string, lines []string) {
		for _, line := range lines {
			all = append(all, diffLine{kind, line})
		}
	}
	add("same", a[:from])
	all = append(all, changes(a[from:len(a)-end], b[from:len(b)-end])...)
	add("same", a[len(a)-end:])
	return shorten(all)
}

func linesOf(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n")
}

// changes compares lines by their longest common subsequence.
func changes(a, b []string) (list []diffLine) {
	if len(a)*len(b) > maxDiffCells {
		for _, line := range a {
			list = append(list, diffLine{"removed", line})
		}
		for _, line := range b {
			list = append(list, diffLine{"added", line})
		}
		return list
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width) // length of the longest common subsequence from each pair of lines on
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			list = append(list, diffLine{"same", a[i]})
			i, j = i+1, j+1
		case j == len(b) || i < len(a) && common[(i+1)*width+j] >= common[i*width+j+1]:
			list = append(list, diffLine{"removed", a[i]})
			i++
		default:
			list = append(list, diffLine{"added", b[j]})
			j++
		}
	}
	return list
}

// shorten replaces runs of equal lines, except a few lines around each change.
func shorten(all []diffLine) (list []diffLine) {
	near := make([]bool, len(all))
	for i, line := range all {
		if line.Kind != "same" {
			for k := max(0, i-contextLines); k <= min(len(all)-1, i+contextLines); k++ {
				near[k] = true
			}
		}
	}
	for i := 0; i < len(all); {
		if near[i] {
			list = append(list, all[i])
			i++
			continue
		}
		from := i
		for i < len(all) && !near[i] {
			i++
		}
		if i-from == 1 {
			list = append(list, all[from])
		} else {
			list = append(list, diffLine{"skipped", fmt.Sprintf("%s unchanged lines", format.Number(i-from))})
		}
	}
	if more := len(list) - maxDiffLines; more > 0 {
		last := diffLine{"skipped", fmt.Sprintf("%s more lines", format.Number(more))}
		list = append(list[:maxDiffLines:maxDiffLines], last)
	}
	return list
}

// misplaced is a problem of a document and its place.
type misplaced struct {
	Line    int // from 1; 0: unknown
	Excerpt string
	invalid.Problem
}

// misplace finds the lines of a document's problems.
func misplace(document string, problems invalid.List) []misplaced {
	at := placesOf(document)
	lines := strings.Split(document, "\n")
	var list []misplaced
	for _, p := range problems {
		m := misplaced{Problem: p}
		offset := brokenAt(document, p.Detail)
		if offset < 0 {
			offset = at.nearest(p.Field)
		}
		if offset >= 0 {
			m.Line = 1 + strings.Count(document[:offset], "\n")
			m.Excerpt = excerpt(lines[m.Line-1], offset-strings.LastIndexByte(document[:offset], '\n')-1)
		}
		list = append(list, m)
	}
	return list
}

// maxExcerpt is the approximate length of an excerpt, in bytes.
const maxExcerpt = 200

// excerpt returns a line, or the part of a long line around a place.
func excerpt(line string, at int) string {
	if len(line) <= maxExcerpt {
		return strings.TrimSpace(line)
	}
	from := clamp(at-maxExcerpt/4, line)
	part := line[from:min(from+maxExcerpt, len(line))]
	return strings.TrimSpace(strings.ToValidUTF8(part, ""))
}

// brokenAt returns the offset at which a document is not JSON or has the wrong type, or -1.
func brokenAt(document, detail string) int {
	if !strings.HasPrefix(detail, "must be a JSON object: ") {
		return -1
	}
	var s rules.Site
	err := json.NewDecoder(strings.NewReader(document)).Decode(&s)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return clamp(int(wrong.Offset)-1, document)
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return clamp(int(wrong.Offset)-1, document)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return clamp(len(strings.TrimRight(document, " \n"))-1, document)
	}
	return -1
}

func clamp(offset int, document string) int { return min(max(offset, 0), len(document)) }

// places are the offsets of the members of a document, in bytes.
type places map[string]int

// placesOf finds the members of a document up to the first syntax error.
func placesOf(document string) places {
	at := places{}
	d := json.NewDecoder(bytes.NewReader([]byte(document)))
	d.UseNumber()
	_ = at.walk(d, document, "", maxPlaceDepth) // an error ends the search
	return at
}

// maxPlaceDepth is the maximum nesting depth of the search. Valid rules are not that deep.
const maxPlaceDepth = 20

var errTooDeep = errors.New("nested too deep")

func (p places) walk(d *json.Decoder, document, field string, depth int) error {
	if depth == 0 {
		return errTooDeep
	}
	token, err := d.Token()
	if err != nil {
		return err
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	for i := 0; d.More(); i++ {
		place := fmt.Sprintf("%s[%d]", field, i)
		start := int(d.InputOffset())
		start += len(document[start:]) - len(strings.TrimLeft(document[start:], ", \t\r\n"))
		if open == '{' {
			name, err := d.Token()
			if err != nil {
				return err
			}
			place = strings.TrimPrefix(fmt.Sprintf("%s.%s", field, name), ".")
		}
		if _, isThere := p[place]; !isThere || open == '{' { // the second of two members with the same name
			p[place] = start
		}
		if err := p.walk(d, document, place, depth-1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the closing delimiter
	return err
}

// parent returns the member around a member, or "".
func parent(field string) string {
	return field[:max(strings.LastIndexByte(field, '.'), strings.LastIndexByte(field, '['), 0)]
}

// nearest returns the offset of a member or of its nearest parent, or -1.
func (p places) nearest(field string) int {
	for field != "" {
		if at, ok := p[field]; ok {
			return at
		}
		field = parent(field)
	}
	return -1
}
