package simulate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/transcript"
	"github.com/proofline/proofline/console/simulate"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/verifier"
	"github.com/proofline/proofline/verifier/source"
)

// recording reads arrivals from a CSV file or a transcript.
func recording(ctx context.Context, arg string) ([]simulate.Bucket, error) {
	const hint = "give a file with lines such as 2030-05-01T12:00:00Z,120, or the URL or directory of a transcript"
	info, err := os.Stat(arg)
	if strings.Contains(arg, "://") || err == nil && info.IsDir() {
		src, err := source.Open(arg)
		if err != nil {
			return nil, cli.Usage(err, hint)
		}
		list, err := transcriptArrivals(ctx, src)
		if err != nil {
			return nil, cli.Unreachable(fmt.Errorf("read the arrivals of %s: %w", arg, err), hint)
		}
		return list, nil
	}
	file, err := os.Open(arg)
	if err != nil {
		return nil, cli.Usage(err, hint)
	}
	defer func() { _ = file.Close() }() // only read from
	list, err := simulate.ReadArrivals(file)
	if errors.Is(err, simulate.ErrArrivals) {
		return nil, cli.Usage(fmt.Errorf("%s: %w", arg, err), hint)
	}
	return list, err
}

// transcriptArrivals reads the arrivals of a transcript. It does not check the rules; that is what
// an audit is for.
func transcriptArrivals(ctx context.Context, src verifier.Source) ([]simulate.Bucket, error) {
	signed, err := src.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	head, err := verifier.Unverified(signed)
	if err != nil {
		return nil, err
	}
	var found arrivals
	if err := transcript.Each(ctx, src, head.Size, found.add); err != nil {
		return nil, err
	}
	if len(found.list) == 0 {
		return nil, errors.New("no visitor has joined")
	}
	return found.list, nil
}

// arrivals collects a transcript's arrivals, which are ordered by time.
type arrivals struct {
	parser fairness.Parser
	opens  fairness.Time
	list   []simulate.Bucket
	total  int
}

func (a *arrivals) add(text []byte) error {
	entry, err := a.parser.Parse(text)
	if err != nil {
		return err
	}
	switch e := entry.(type) {
	case *fairness.Room:
		a.opens = e.Opens
	case *fairness.Arrive:
		at := simulate.Duration(time.Duration(e.Time-a.opens) * time.Millisecond)
		if n := len(a.list); n == 0 || a.list[n-1].At != at {
			a.list = append(a.list, simulate.Bucket{At: at})
		}
		a.list[len(a.list)-1].Count++
		if a.total++; a.total > simulate.MaxVisitors {
			return fmt.Errorf("more than %d visitors joined", simulate.MaxVisitors)
		}
	}
	return nil
}
