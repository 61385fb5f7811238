package issuer

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of mail.
const (
	mailWorkers  = 4                // connections to the mail server
	mailQueue    = 1000             // mails that wait for one
	mailTimeout  = 30 * time.Second // of one mail
	maxMails     = 3                // to one address in mailInterval
	mailInterval = 15 * time.Minute
	maxAddresses = 100_000 // remembered; with more, those of the last interval are forgotten
)

// postOffice sends mail in the background, so that pages do not show by their speed whether one is sent.
type postOffice struct {
	mailer Mailer
	log    *slog.Logger
	now    func() time.Time
	queue  chan letter
	done   sync.WaitGroup

	mu    sync.Mutex
	since time.Time
	sent  map[string]int // mails by address since then
}

type letter struct{ to, subject, text string }

func newPostOffice(m Mailer, log *slog.Logger, now func() time.Time) *postOffice {
	p := &postOffice{mailer: m, log: log, now: now, queue: make(chan letter, mailQueue), since: now(),
		sent: map[string]int{}}
	for range mailWorkers {
		p.done.Go(p.work)
	}
	return p
}

func (p *postOffice) work() {
	for l := range p.queue {
		ctx, cancel := context.WithTimeout(context.Background(), mailTimeout)
		if err := p.mailer.Send(ctx, l.to, l.subject, l.text); err != nil {
			p.log.Warn("cannot send mail", "err", withoutAddress(err, l.to))
		}
		cancel()
	}
}

// withoutAddress describes a failure without the address, which mail servers quote in their responses.
func withoutAddress(err error, address string) string {
	var answer interface{ ErrorCode() int }
	if errors.As(err, &answer) && answer.ErrorCode() != 0 {
		return "the mail server answers with " + strconv.Itoa(answer.ErrorCode())
	}
	return strings.ReplaceAll(err.Error(), address, "ADDRESS")
}

// close sends what waits.
func (p *postOffice) close() {
	close(p.queue)
	p.done.Wait()
}

// mayWrite counts a mail to an address, and reports whether it is not one too many.
func (p *postOffice) mayWrite(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.now(); now.Sub(p.since) > mailInterval || len(p.sent) >= maxAddresses {
		p.since = now
		clear(p.sent)
	}
	p.sent[address]++
	return p.sent[address] <= maxMails
}

// send queues a mail, or returns [errAway] if too many wait.
func (p *postOffice) send(to, subject, text string) error {
	select {
	case p.queue <- letter{to, subject, text}:
		return nil
	default:
		return errAway
	}
}
