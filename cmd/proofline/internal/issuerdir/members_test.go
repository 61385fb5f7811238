package issuerdir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofline/proofline/fairness/credential/issuer"
)

// TestSetMembers replaces a list of members, of which the directory has no value, and leaves codes alone.
func TestSetMembers(t *testing.T) {
	t.Parallel()
	dir := Dir(t.TempDir())
	i, err := dir.Issuer(nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := [][]string{{"17", "secret-birthday"}, {"18", ""}, {" 17 ", "SECRET-birthday"}, {"19", "x"}}
	columns := []string{"number", "birthday"}
	if m, err := dir.SetMembers(i, "sale.fans", columns, rows, true); err != nil || fmt.Sprint(m) != "{2 0 [2 3]}" {
		t.Errorf("checked: %v, %v", m, err)
	}
	if _, _, err := dir.Written("sale.fans"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after a check: %v", err)
	}
	if m, err := dir.SetMembers(i, "sale.fans", columns, rows, false); err != nil || m.Count != 2 {
		t.Errorf("set: %v, %v", m, err)
	}
	text, err := os.ReadFile(filepath.Join(string(dir), "lists", "sale.fans.list"))
	if err != nil || strings.Contains(strings.ToLower(string(text)), "secret") {
		t.Errorf("the list is %q, %v", text, err)
	}
	for _, check := range []bool{true, false} {
		if m, err := dir.SetMembers(i, "sale.fans", columns, rows[3:], check); err != nil || fmt.Sprint(m) != "{1 2 []}" {
			t.Errorf("replaced (check %t): %v, %v", check, m, err)
		}
	}
	l, err := dir.List(i, "sale.fans")
	if err != nil {
		t.Fatal(err)
	}
	if _, has := l.Account("17", "secret-birthday"); has {
		t.Error("a member of the list before is still known")
	}
	if _, has := l.Account("19", "X"); !has {
		t.Error("the member of the new list is not known")
	}
	if _, err := dir.SetMembers(i, "sale.fans", []string{"a", "a"}, rows, true); !errors.Is(err, issuer.ErrList) {
		t.Errorf("equal columns: %v", err)
	}
	if _, _, err := dir.AddCodes(i, "sale.codes", 1); err != nil {
		t.Fatal(err)
	}
	for _, check := range []bool{true, false} {
		if _, err := dir.SetMembers(i, "sale.codes", columns, rows, check); !errors.Is(err, ErrCodes) {
			t.Errorf("in place of codes (check %t): %v", check, err)
		}
	}
}

// TestRemoveLists removes the lists of a room that is over, and no others.
func TestRemoveLists(t *testing.T) {
	t.Parallel()
	dir := Dir(t.TempDir())
	i, err := dir.Issuer(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sale.fans", "sale-2.fans"} {
		if _, err := dir.SetMembers(i, name, []string{"number"}, [][]string{{"17"}, {"18"}}, false); err != nil {
			t.Fatal(err)
		}
	}
	isOver := func(name string) bool { return name == "sale.fans" }
	for _, c := range []struct {
		isChecked bool
		want      int64
	}{{true, 2}, {false, 2}, {false, 0}} {
		if n, err := dir.RemoveLists(isOver, c.isChecked); err != nil || n != c.want {
			t.Errorf("%d entries, want %d, %v", n, c.want, err)
		}
	}
	if _, err := dir.List(i, "sale.fans"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the list that was removed: %v", err)
	}
	if l, err := dir.List(i, "sale-2.fans"); err != nil || l.Len() != 2 {
		t.Errorf("another list: %v", err)
	}
}
