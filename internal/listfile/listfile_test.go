package listfile

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/proofline/proofline/internal/invalid"
)

func TestRead(t *testing.T) {
	for text, want := range map[string][]int{
		"1\n2\n":                                 {1, 2},
		"\ufeff1\r\n\r\n 2 \r\n3":                {1, 2, 3},
		"number\n7\n":                            {7},
		"Name;Number\n\"Doe; J\";7\nX;8\n;\n":    {7, 8},
		"why,number\n,7\n\"a \"\"b\"\", c\",8\n": {7, 8},
		"number\twhy\n7\tx\n":                    {7},
		"7,x\n8,y\n":                             {7, 8},
	} {
		if got, err := Read(text, "number", 3, strconv.Atoi); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	many := strings.Repeat("x\n", 25)
	for text, want := range map[string]string{
		"":                   "has no number",
		"number\n":           "has no number",
		"1\nx\n\n3a\n":       `line 2: "x" is no number; line 4: "3a" is no number`,
		"why,number\nx\n":    `line 2: "" is no number`,
		"1\n2\n3\n4\n":       "has more than 3 lines: split it",
		"1\n" + many + "2\n": "and 5 more lines",
		"\"1\n2\n3\n":        `line 1: "1\n2\n3" is no number`,
	} {
		if _, err := Read(text, "number", 3, strconv.Atoi); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// FuzzRead checks that every line that is not empty is read, is a heading, or is named.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "1\n2", "a;b\n1;2", "\"", "number\n\"\"\"\n", "\ufeff\t\n", "\r\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, err := Read(text, "number", 100, func(cell string) (string, error) {
			if len(cell) != 1 {
				return "", errors.New("long")
			}
			return cell, nil
		})
		if err == nil && (len(list) == 0 || len(list) > 100) {
			t.Errorf("%q: %q", text, list)
		}
		for _, value := range list {
			if !strings.Contains(text, value) {
				t.Errorf("%q has no %q", text, value)
			}
		}
		if problems := invalid.Problems(err); err != nil && (len(problems) == 0 || len(problems) > named+1) {
			t.Errorf("%q: %s", text, fmt.Sprint(err))
		}
	})
}

func TestTable(t *testing.T) {
	columns, rows, err := Table("\ufeffNumber; Birthday\r\n17;\"1980; May\"\r\n", 1)
	if err != nil || fmt.Sprint(columns, rows) != "[Number Birthday] [[17 1980; May]]" {
		t.Errorf("%v, %v, %v", columns, rows, err)
	}
	for text, want := range map[string]string{
		"": "must have a row", "number\n": "must have a row", "number\n1\n2\n": "has more than 1 rows",
		"a@example.com\nb@example.com\n": "must begin with the names", "a,b\n1\n": "cannot be read", "a\n\"b\n": "cannot be read",
	} {
		if _, _, err := Table(text, 1); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzTable(f *testing.F) {
	f.Add("a,b\n1,2\n")
	f.Add("a\tb\n\"1\"\t2")
	f.Fuzz(func(t *testing.T, text string) {
		columns, rows, err := Table(text, 10)
		if err == nil && (len(rows) == 0 || len(rows) > 10) || err != nil && invalid.Problems(err) == nil {
			t.Errorf("%q: %q, %v", text, rows, err)
		}
		for _, row := range rows {
			if len(row) != len(columns) {
				t.Errorf("%q: %q below %q", text, row, columns)
			}
		}
	})
}
