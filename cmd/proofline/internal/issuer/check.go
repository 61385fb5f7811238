package issuer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/spf13/cobra"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/issuerdir"
	"github.com/proofline/proofline/cmd/proofline/internal/transcript"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/fairness/credential"
	"github.com/proofline/proofline/fairness/credential/issuer"
	"github.com/proofline/proofline/verifier/source"
	web "github.com/proofline/proofline/web/issuer"
)

func checkCommand(t *cli.Terminal) *cobra.Command {
	var dir issuerdir.Dir
	var file, own string
	c := &cobra.Command{
		Use:   "check",
		Short: "Find tickets that show credentials of another holder of the key",
		Long: `Compare the transcripts of the configuration's rooms with the records of this
issuer, and print the tickets that show a credential which it has not signed, one
a line: somebody else has its key. The organizer of the room can revoke them.

Blind credentials cannot be compared one by one, because the issuer does not know
their tickets: compare their number, with proofline-verify audit --issued. The
transcript is taken as it is: audit it first. The issuer may be running.

With --room, check the server's own issuer instead, which has no configuration: name
its directory with --data, and the address of one of the server's rooms.

Exit code 0: all are the issuer's; 1: some are not; 3: a room could not be read.`,
		Example: `  proofline issuer check --config issuer.yaml > foreign.txt
  proofline issuer check --data ./proofline-data/own-issuer --room https://queue.example.com/r/derby`,
		Args: cobra.NoArgs,
		RunE: cli.Runs(func(c *cobra.Command, _ []string) error {
			cfg, err := &config{}, error(nil)
			if own != "" {
				err = cfg.ofOwn(c.Context(), dir, own)
			} else {
				cfg, err = readConfig(file)
			}
			if err != nil {
				return err
			}
			return cfg.check(c.Context(), t, dir)
		}),
	}
	addData(c.Flags(), &dir, t)
	addConfig(c.Flags(), &file)
	c.Flags().StringVar(&own, "room", "", "`URL` of a room of the server whose own issuer to check")
	c.MarkFlagsMutuallyExclusive("config", "room")
	return c
}

// ofOwn adds the offers of a server's own issuer in a room: those for methods with a key of the issuer.
func (c *config) ofOwn(ctx context.Context, dir issuerdir.Dir, address string) error {
	i, err := dir.Issuer(nil)
	if err != nil {
		return err
	}
	at, err := parseURL(address)
	if err != nil {
		return cli.Usage(fmt.Errorf("--room: %w", err), "give the address of the room's page")
	}
	text, err := firstEntry(ctx, at.String())
	if err != nil {
		return cli.Unreachable(err, "give the address of the room's page")
	}
	entry, err := fairness.ParseEntry(text)
	if err != nil {
		return err
	}
	room, ok := entry.(*fairness.Room)
	if !ok {
		return fmt.Errorf("%s does not begin with a policy", at)
	}
	for _, m := range room.Methods {
		of := &offerConfig{Name: path.Base(at.Path) + "." + m.Name, Method: m.Name, Kind: m.Kind, room: at,
			Entry: fmt.Sprintf("%x", sha256.Sum256(text)), Limit: m.Limit}
		of.List = of.Name
		for _, of.Proof = range []web.Proof{web.ByList, web.ByMail, web.ByOIDC, web.ByPuzzle, web.ByCaptcha} {
			offer := &issuer.Offer{Method: m.Name, Limit: m.Limit, Purpose: string(of.Proof)}
			if of.Proof == web.ByList {
				offer.Purpose = ""
			}
			if m.Kind == credential.Signed && i.Method(offer).Key == m.Key {
				c.Offers = append(c.Offers, of)
				break
			}
		}
	}
	if len(c.Offers) == 0 {
		return cli.Failed(fmt.Errorf("no signed method of %s has a key of this issuer", at),
			"name the issuer's directory with --data: own-issuer in the data directory of the server")
	}
	return nil
}

// method is a method of a room for which the issuer signs.
type method struct{ room, name string }

// check prints the tickets that show credentials which none of the offers has signed.
func (c *config) check(ctx context.Context, t *cli.Terminal, dir issuerdir.Dir) error {
	i, err := dir.Issuer(nil)
	if err != nil {
		return err
	}
	var methods []method // in the order of the offers
	offers := map[method][]*offerConfig{}
	for _, o := range c.Offers {
		if m := (method{o.room.String(), o.Method}); o.Kind == credential.Signed {
			if offers[m] == nil {
				methods = append(methods, m)
			}
			offers[m] = append(offers[m], o)
		} else {
			t.Note(fmt.Sprintf("%s of %s is blind: compare its number with proofline-verify audit --issued", o.Method, o.room))
		}
	}
	foreign := 0
	for _, m := range methods {
		n, err := c.checkMethod(ctx, t, i, dir, offers[m])
		if err != nil {
			return err
		}
		foreign += n
	}
	if foreign > 0 {
		return cli.Failed(fmt.Errorf("tickets with credentials that this issuer has not signed: %d", foreign),
			"somebody else has its key: stop the issuer, and send the list to the organizer of the room, who can revoke them")
	}
	return nil
}

// checkMethod compares the tickets of one method with the records of its offers.
func (c *config) checkMethod(ctx context.Context, t *cli.Terminal, i *issuer.Issuer, dir issuerdir.Dir,
	of []*offerConfig) (foreign int, err error) {
	room, name := of[0].room.String(), of[0].Method
	shown, entry, err := readShown(ctx, room, name)
	if err != nil {
		return 0, cli.Unreachable(fmt.Errorf("room %s: %w", room, err),
			"give the address of the room in the configuration")
	}
	var records []*issuer.Records // read after the transcript: they have all that it has
	for _, o := range of {
		offer, err := o.offer(dir)
		if err != nil {
			return 0, err
		}
		if offer.Room != entry {
			return 0, cli.Failed(fmt.Errorf("offer %s: the room at %s has another first entry", o.Name, room),
				"take entry from the room for which the offer is: proofline issuer room URL")
		}
		if o.Proof == web.ByList {
			list, err := dir.List(i, o.List)
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // without a list, nobody was confirmed
				return 0, err
			}
			offer.Once = err == nil && list.IsCodes
		}
		of, err := i.ReadRecords(string(dir), offer)
		if err != nil {
			return 0, err
		}
		records = append(records, of)
	}
	for _, s := range shown {
		isOurs := false
		for _, list := range records {
			isOurs = isOurs || list.Has(s.nullifier, s.Request)
		}
		if !isOurs {
			foreign++
			if err := t.Printf("%s\n", fairness.Ticket(s.Ticket)); err != nil {
				return foreign, err
			}
		}
	}
	t.Note(fmt.Sprintf("%s of %s: %d tickets showed it, and this issuer has signed for %d of them", name, room, len(shown),
		len(shown)-foreign))
	return foreign, nil
}

// shown is a ticket with the nullifier of a credential that it showed.
type shown struct {
	issuer.Request
	nullifier []byte
}

// readShown returns the tickets of a room that showed a method, and the hash of the room's first entry.
func readShown(ctx context.Context, url, method string) (list []shown, entry [sha256.Size]byte, err error) {
	src, err := source.HTTP(url, nil)
	if err != nil {
		return nil, entry, err
	}
	size, err := sizeOf(ctx, src, url)
	if err != nil {
		return nil, entry, err
	}
	lanes := map[fairness.Ticket]fairness.Lane{}
	add := func(t fairness.Ticket, c credential.Credential) {
		if c.Method == method {
			list = append(list, shown{issuer.Request{Lane: string(lanes[t]), Ticket: t}, c.Nullifier})
		}
	}
	isFirst := true
	err = transcript.Each(ctx, src, size, func(text []byte) error {
		if isFirst {
			entry, isFirst = sha256.Sum256(text), false
		}
		e, err := fairness.ParseEntry(text)
		if err != nil {
			return err
		}
		switch e := e.(type) {
		case *fairness.Arrive:
			lanes[e.Ticket] = e.Lane
			for _, c := range e.Credentials {
				add(e.Ticket, c)
			}
		case *fairness.Merit:
			add(e.Ticket, e.Credential)
		}
		return nil
	})
	return list, entry, err
}
