// Package apply plans the changes of "proofline room apply": it reads a file of
// rooms, compares each with the server's room, and returns the steps that would make
// them equal.
//
// A file is YAML or JSON with one room, or several separated by "---". A room has
// the members of a new room's configuration, and "host". Members that it leaves out
// do not change.
package apply

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/room"
)

var (
	// ErrSyntax is returned when a file is neither YAML nor JSON.
	ErrSyntax = errors.New("neither YAML nor JSON")
	// ErrInvalid is returned when a file's rooms are invalid.
	ErrInvalid = errors.New("not a valid rooms file")
)

// Limits on a file's values once its aliases are expanded.
const (
	maxValues = 100_000
	maxPath   = 500 // length of a field's name, in bytes
)

// Wanted is a room in a file.
type Wanted struct {
	Config room.Config
	Host   string
	Line   int    // line in the file where the room begins
	JSON   []byte // request body that creates it
	lines  lines
}

// Sets reports whether the file sets a member, such as "outflow.max_active".
func (w *Wanted) Sets(member string) bool { return w.lines[member] > 0 }

// lines maps field names, such as "outflow.max_active", to lines in the file; "" is the whole room.
type lines map[string]int

// of returns the line of a field, or of the innermost field around it.
func (l lines) of(field string) int {
	for {
		if line, ok := l[field]; ok || field == "" {
			return line
		}
		field = field[:max(0, strings.LastIndexAny(field, ".["))]
	}
}

// Read reads a file. The error lists all mistakes with their lines.
func Read(in io.Reader) ([]Wanted, error) {
	var list []Wanted
	var wrong []error
	first := map[string]int{}
	for d := yaml.NewDecoder(in); ; {
		var document yaml.Node
		err := d.Decode(&document)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %s", ErrSyntax, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
			continue // an empty document
		}
		w, err := readRoom(document.Content[0])
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if before, ok := first[w.Config.Slug]; ok {
			wrong = append(wrong,
				fmt.Errorf("line %d: slug: room %s is already on line %d", w.Line, w.Config.Slug, before))
		}
		first[w.Config.Slug] = w.Line
		list = append(list, w)
	}
	if len(wrong) > 0 {
		return nil, fmt.Errorf("%w:\n%w", ErrInvalid, errors.Join(wrong...))
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%w: it contains no room", ErrInvalid)
	}
	return list, nil
}

// readRoom reads one room.
func readRoom(n *yaml.Node) (Wanted, error) {
	w := Wanted{Line: n.Line, lines: lines{"": n.Line}}
	c := &converter{lines: w.lines, left: maxValues}
	value := c.value("", n)
	members, ok := value.(map[string]any)
	if !ok && len(c.wrong) == 0 {
		c.fail(n.Line, "", "must be a mapping, with lines such as slug: sale")
	}
	if len(c.wrong) > 0 {
		return w, errors.Join(c.wrong...)
	}
	w.host(c, members)
	text, err := json.Marshal(members)
	if err != nil {
		return w, fmt.Errorf("line %d: %w", n.Line, err)
	}
	w.Config, err = room.ParseConfig(text)
	for _, p := range invalid.Problems(err) {
		c.fail(c.lines.of(p.Field), p.Field, p.Detail)
	}
	if w.Config.Slug == "" && len(c.wrong) == 0 {
		c.fail(n.Line, "slug", "is required: it is the room's name in its address")
	}
	if w.Host != "" {
		members["host"] = w.Host
	}
	w.JSON, err = json.Marshal(members)
	return w, errors.Join(append(c.wrong, err)...)
}

// host moves the host out of the members, as it is not part of the configuration.
func (w *Wanted) host(c *converter, members map[string]any) {
	value, ok := members["host"]
	if !ok {
		return
	}
	if w.Host, ok = value.(string); !ok && value != nil {
		c.fail(c.lines.of("host"), "host", "must be a string")
	}
	delete(members, "host")
}

// converter converts YAML nodes to JSON values, and records their lines.
type converter struct {
	lines lines
	wrong []error
	left  int  // number of values that may still be read
	full  bool // whether the limits were exceeded and reported
}

func (c *converter) fail(line int, field, detail string) {
	if field == "" {
		field = "the room"
	}
	c.wrong = append(c.wrong, fmt.Errorf("line %d: %s: %s", line, field, detail))
}

func (c *converter) value(field string, n *yaml.Node) any {
	if c.left--; c.left < 0 || len(field) > maxPath {
		if !c.full {
			c.fail(n.Line, field[:min(len(field), 40)], "is too large")
		}
		c.full = true
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		return c.mapping(field, n)
	case yaml.SequenceNode:
		list := make([]any, len(n.Content))
		for i, item := range n.Content {
			name := fmt.Sprintf("%s[%d]", field, i)
			c.lines[name] = item.Line
			list[i] = c.value(name, item)
		}
		return list
	case yaml.AliasNode:
		return c.value(field, n.Alias)
	}
	return c.scalar(field, n)
}

func (c *converter) mapping(field string, n *yaml.Node) any {
	out := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		if field != "" {
			name = field + "." + name
		}
		if _, twice := out[key.Value]; twice {
			c.fail(key.Line, name, "is given twice")
			continue
		}
		c.lines[name] = key.Line
		out[key.Value] = c.value(name, value)
	}
	return out
}

// number matches JSON numbers.
var number = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// scalar reads a single value. Times stay strings: a room's title may look like one.
func (c *converter) scalar(field string, n *yaml.Node) any {
	switch n.Tag {
	case "!!null":
		return nil
	case "!!bool":
		return n.Value == "true" || n.Value == "True" || n.Value == "TRUE"
	case "!!int", "!!float":
		if number.MatchString(n.Value) {
			return json.Number(n.Value)
		}
	case "!!str", "!!timestamp":
		return n.Value
	}
	c.fail(n.Line, field, fmt.Sprintf("cannot be %.40q: quote it if it is text", n.Value))
	return nil
}

// same reports whether two values have the same JSON.
func same(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}
