package invalid

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestError(t *testing.T) {
	for want, err := range map[string]error{
		"a is b; c is d": &Error{List{{"a", "is b"}, {"c", "is d"}}},
		"x: must be":     fmt.Errorf("x: %w", Field("", "must be")),
		strings.Repeat("a is b; ", Max-1) + "a is b": &Error{slices.Repeat(List{{"a", "is b"}}, 10*Max)},
	} {
		if got := err.Error(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestProblems(t *testing.T) {
	want := List{{"a", "is b"}}
	if got := Problems(fmt.Errorf("x: %w", Field("a", "is b"))); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	for _, err := range []error{nil, errors.New("a is b")} {
		if got := Problems(err); got != nil {
			t.Errorf("%v of %v", got, err)
		}
	}
}

func TestList(t *testing.T) {
	var list List
	list.Check(true, "a", "is b")
	if err := list.Err(); err != nil || list != nil {
		t.Fatalf("error %v without a problem", err)
	}
	list.Check(false, "a", "is b")
	list.Add("c", "is d")
	if got := Problems(list.Err()); !slices.Equal(got, List{{"a", "is b"}, {"c", "is d"}}) {
		t.Errorf("%v", got)
	}
}

func TestFrom(t *testing.T) {
	type other struct{ Field, Detail string }
	if got := From([]other{{"a", "is b"}}); !slices.Equal(got, List{{"a", "is b"}}) {
		t.Errorf("%v", got)
	}
	if got := From[other](nil); got != nil {
		t.Errorf("%v of nothing", got)
	}
}
