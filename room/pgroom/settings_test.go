package pgroom_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofline/proofline/room/pgroom"
)

// TestSettings changes settings one by one, and counts the changes.
func TestSettings(t *testing.T) {
	t.Parallel()
	s, _ := store(t)
	ctx, id := t.Context(), pgroom.RoomID("set")
	if _, err := s.Settings(ctx, id); !errors.Is(err, pgroom.ErrNotFound) {
		t.Errorf("settings of no room: %v, want ErrNotFound", err)
	}
	if _, err := s.MergeSettings(ctx, id, []byte(`{}`)); !errors.Is(err, pgroom.ErrNotFound) {
		t.Errorf("change of no room: %v, want ErrNotFound", err)
	}
	for _, slug := range []string{"set", "other"} {
		if _, err := s.Insert(ctx, record(slug), nil, nothing); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Settings(ctx, id); err != nil || got.JSON != nil || got.Version != 0 {
		t.Errorf("settings of a new room: %s, version %d, %v", got.JSON, got.Version, err)
	}
	for i, c := range []struct{ change, want string }{
		{`{"a": [1, 2]}`, `{"a": [1, 2]}`},
		{`{"b": {"x": "y"}}`, `{"a": [1, 2], "b": {"x": "y"}}`},
		{`{"a": [], "b": {"z": 1}}`, `{"a": [], "b": {"z": 1}}`},
		{`{}`, `{"a": [], "b": {"z": 1}}`},
	} {
		merged, err := s.MergeSettings(ctx, id, []byte(c.change))
		if err != nil || merged.Version != int64(i+1) || cmp.Diff(value(t, c.want), value(t, string(merged.JSON))) != "" {
			t.Errorf("%s: %s, version %d, %v", c.change, merged.JSON, merged.Version, err)
		}
		if read, err := s.Settings(ctx, id); err != nil || cmp.Diff(merged, read) != "" {
			t.Errorf("%s: read %s, version %d, %v", c.change, read.JSON, read.Version, err)
		}
	}
	if _, err := s.MergeSettings(ctx, id, []byte(`{"a":`)); err == nil {
		t.Error("half an object was stored")
	}
	if got, err := s.Get(ctx, "set"); err != nil || got.SettingsVersion != 4 {
		t.Errorf("the room has version %d, %v", got.SettingsVersion, err)
	}
	if got, err := s.Get(ctx, "other"); err != nil || got.SettingsVersion != 0 {
		t.Errorf("another room has version %d, %v", got.SettingsVersion, err)
	}
}

func value(t *testing.T, text string) (v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}
