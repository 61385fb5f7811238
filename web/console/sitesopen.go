package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/proofline/proofline/connector/rules"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/room"
)

// openShop switches a room off in the rules of every site that uses it:
// connectors then let everyone reach the pages that the room protected.
func (c *Console) openShop(ctx context.Context, by account.Actor, r *room.Room) error {
	list, err := c.Sites.List(ctx, by)
	if err != nil {
		return err
	}
	for _, one := range list {
		if !slices.Contains(one.Rooms, r.URL) {
			continue
		}
		s, err := c.Sites.Site(ctx, by, one.Name)
		if err != nil {
			return err
		}
		document, err := switchedOff(s.Rules, r.URL)
		if err != nil {
			return err
		}
		if _, err := c.Sites.Update(ctx, by, s.Name, s.Version, document); err != nil {
			return err
		}
	}
	return nil
}

// switchedOff returns a rules document in which the room with that address has
// the mode "off". The rest of the document stays as its owner wrote it.
func switchedOff(document []byte, address string) ([]byte, error) {
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
		if one.URL != address {
			continue
		}
		one.Mode, one.From, one.Until = rules.Off, nil, nil
		text, err := json.Marshal(one)
		if err != nil {
			return nil, fmt.Errorf("write rules: %w", err)
		}
		document = bytes.ReplaceAll(document, raw, []byte(spaced(string(text))))
	}
	return document, nil
}
