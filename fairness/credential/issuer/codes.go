package issuer

import "errors"

// void is what a ledger has of an account that was voided before it asked for anything.
var void [hashSize]byte

// Tally counts accounts of an offer by what became of them.
type Tally struct {
	Unused int
	Used   int // have a credential
	Void   int
}

// add counts an account of which the ledger may have a record.
func (t *Tally) add(asked [hashSize]byte, has bool) {
	switch {
	case !has:
		t.Unused++
	case asked == void:
		t.Void++
	default:
		t.Used++
	}
}

// Batch is the codes of a list that were made at once.
type Batch struct {
	Millis int64 // Unix time at which they were made
	Tally
}

// Batches returns the batches of a list of codes, and what became of them in an offer.
func (i *Issuer) Batches(o *Offer, list *List) ([]Batch, error) {
	l, err := i.store.ledger(o)
	if err != nil {
		return nil, err
	}
	batches, id := make([]Batch, len(list.made)), i.ids(o)
	for n, millis := range list.made {
		batches[n].Millis = millis
	}
	for h, batch := range list.known {
		record := id(list.account(h))
		l.mu.Lock()
		asked, has := l.asked[record]
		l.mu.Unlock()
		batches[batch-1].add(asked, has)
	}
	return batches, nil
}

// Void voids accounts: those that have no credential of an offer yet get none. The tally is that of before. With
// check, Void only counts. When it returns, the store has recorded what it did.
func (i *Issuer) Void(o *Offer, accounts []string, check bool) (t Tally, err error) {
	l, err := i.store.ledger(o)
	if err != nil {
		return t, err
	}
	id, writing := i.ids(o), map[*batch]struct{}{}
	for _, account := range accounts {
		record := id(account)
		if check {
			l.mu.Lock()
			asked, has := l.asked[record]
			l.mu.Unlock()
			t.add(asked, has)
			continue
		}
		b, again, err := l.add(record, void, true, 0)
		switch {
		case errors.Is(err, ErrUsed):
			t.Used++
			continue
		case err != nil:
			return t, err
		case again:
			t.Void++
		default:
			t.Unused++
		}
		if b != nil {
			writing[b] = struct{}{}
		}
	}
	for b := range writing {
		<-b.done
		err = errors.Join(err, b.err)
	}
	return t, err
}

// ids returns what the store calls accounts of an offer.
func (i *Issuer) ids(o *Offer) func(account string) [hashSize]byte {
	nullifiers, records := i.nullifierKey(o), i.accountKey(o)
	return func(account string) [hashSize]byte {
		if o.Key == nil {
			account = string(keyed(nullifiers, o.Method+"\x00"+account))
		}
		return [hashSize]byte(keyed(records, account))
	}
}
