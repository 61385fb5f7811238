package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/internal/jsontext"
)

// NamesOf lists the sites whose rules name the room with that address.
func (s *Sites) NamesOf(ctx context.Context, by account.Actor, room string) (names []string, err error) {
	list, err := s.List(ctx, by)
	for _, one := range list {
		if slices.Contains(one.Rooms, room) {
			names = append(names, one.Name)
		}
	}
	return names, err
}

// SwitchOff switches a room off in the rules of every site that names it: connectors then let all
// visitors reach the pages that the room protected.
func (s *Sites) SwitchOff(ctx context.Context, by account.Actor, room string) error {
	names, err := s.NamesOf(ctx, by, room)
	if err != nil {
		return err
	}
	for _, name := range names {
		found, err := s.Site(ctx, by, name)
		if err != nil {
			return err
		}
		document, err := switchedOff(found.Rules, room)
		if err != nil {
			return err
		}
		if _, err := s.Update(ctx, by, name, found.Version, document); err != nil {
			return err
		}
	}
	return nil
}

// switchedOff returns a rules document in which the room with that address has the mode "off". The
// rest of the document keeps its formatting.
func switchedOff(document []byte, room string) ([]byte, error) {
	var read struct {
		Rooms map[string]json.RawMessage `json:"rooms"`
	}
	if err := json.Unmarshal(document, &read); err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	for _, raw := range read.Rooms {
		var one rules.Room
		if err := json.Unmarshal(raw, &one); err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		if one.URL != room {
			continue
		}
		one.Mode, one.From, one.Until = rules.Off, nil, nil
		text, err := json.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("write rules: %w", err)
		}
		document = bytes.ReplaceAll(document, raw, []byte(jsontext.Spaced(string(text))))
	}
	return document, nil
}
