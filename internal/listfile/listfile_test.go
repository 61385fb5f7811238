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
