// Package listfile reads the lists that people upload or give to a command: one value a line, or a CSV file in which
// one column has the values, or a table.
package listfile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/proofline/proofline/internal/invalid"
)

// named is how many bad lines an error names.
const named = 20

// looks are examples of values.
var looks = map[string]string{
	"ticket":    "cda3f665-387e-8031-a3d9-8534adbd7fa3",
	"nullifier": "b5bb9d8014a0f9b1d61e21e796d78dccdf1352f23cd32812f4850b878ae4944c",
}

// Read reads a list of at most so many values. They are in the column that the first line calls name, such as
// "ticket", or else in the first one; the separator is a comma, a semicolon or a tab. Empty lines count for nothing.
// The error is an [*invalid.Error] that names the first bad lines by their numbers, and says how many more there are.
func Read[T any](text, name string, most int, parse func(string) (T, error)) (list []T, err error) {
	rows := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	rows.Comma, rows.FieldsPerRecord, rows.LazyQuotes, rows.ReuseRecord = separator(text), -1, true, true
	var problems invalid.List
	bad, column := 0, 0
	for isFirst := true; ; isFirst = false {
		cells, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil { // cannot happen with lazy quotes
			return nil, invalid.Field("", "cannot be read: "+err.Error())
		}
		if isFirst {
			at := slices.IndexFunc(cells, func(cell string) bool {
				return strings.EqualFold(strings.TrimSpace(cell), name)
			})
			if at >= 0 {
				column = at
				continue
			}
		}
		cell, line := "", 0
		if column < len(cells) {
			cell = strings.TrimSpace(cells[column])
			line, _ = rows.FieldPos(column)
		} else {
			line, _ = rows.FieldPos(0)
		}
		if cell == "" && strings.TrimSpace(strings.Join(cells, "")) == "" {
			continue
		}
		value, err := parse(cell)
		switch {
		case err != nil:
			if bad++; bad <= named {
				problems.Add(fmt.Sprintf("line %d:", line), fmt.Sprintf("%.60q is no %s", cell, name))
			}
		case len(list) == most:
			return nil, invalid.Field("", fmt.Sprintf("has more than %d lines: split it", most))
		default:
			list = append(list, value)
		}
	}
	if bad > named {
		problems.Add("", fmt.Sprintf("and %d more lines", bad-named))
	}
	switch {
	case bad > 0 && looks[name] != "":
		problems.Add("", fmt.Sprintf("a %s looks like %s", name, looks[name]))
	case bad == 0 && len(list) == 0:
		problems.Add("", "has no "+name)
	}
	return list, problems.Err()
}

// Table reads a file of at most so many rows of equal length below a row with the names of the columns.
func Table(text string, most int) (columns []string, rows [][]string, err error) {
	in := csv.NewReader(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
	in.Comma, in.TrimLeadingSpace = separator(text), true
	all, err := in.ReadAll()
	switch {
	case err != nil:
		return nil, nil, invalid.Field("", "cannot be read: "+err.Error())
	case len(all) < 2:
		return nil, nil, invalid.Field("", "must have a row with the names of the columns, and one for each person")
	case len(all)-1 > most:
		return nil, nil, invalid.Field("", fmt.Sprintf("has more than %d rows", most))
	case slices.ContainsFunc(all[0], func(name string) bool { return strings.ContainsAny(name, "@0123456789") }):
		return nil, nil, invalid.Field("", "must begin with the names of the columns, such as number or address, "+
			"and not with a person")
	}
	return all[0], all[1:], nil
}

// separator returns what separates the columns of a file: what its first line has.
func separator(text string) rune {
	first, _, _ := strings.Cut(text, "\n")
	for _, r := range "\t;" {
		if strings.ContainsRune(first, r) {
			return r
		}
	}
	return ','
}
