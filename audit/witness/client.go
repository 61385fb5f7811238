package witness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"github.com/proofline/proofline/audit"
)

// Defaults of a [Client].
const (
	// DefaultTimeout is the time limit for one request, answer included.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxSkew is the maximum difference between a cosignature's time and the client's.
	DefaultMaxSkew = time.Minute

	maxAnswer = MaxRequest
	userAgent = "proofline (+https://github.com/proofline/proofline)"
)

// Client requests cosignatures from one witness. It is safe for concurrent use; its fields must not
// change after the first request.
type Client struct {
	URL string           // submission prefix, such as https://witness.example.org
	Key audit.Witness    // key that must have made the cosignatures
	Now func() time.Time // clock to compare cosignature times with

	HTTP    *http.Client  // nil: http.DefaultClient; redirects are never followed
	Timeout time.Duration // 0: DefaultTimeout
	MaxSkew time.Duration // 0: DefaultMaxSkew
}

// AddCheckpoint requests the cosignature of a signed checkpoint, with the consistency proof from
// the checkpoint of size old, which the witness has. The proof is empty for an old size of 0. The
// checkpoint should have only the log's signature, because a witness may accept no more than 16 kB.
// The returned cosignature is verified.
//
// A *ConflictError has the size from which the witness needs the proof. ErrUnavailable means to
// retry later; it may be a [*RetryError], which says when. ErrMalformed, ErrUnsigned,
// ErrUnknownLog, ErrInconsistent and ErrTooLarge mean that the witness rejected the request,
// ErrAnswer that its answer is invalid. If ctx is done, its error is returned unchanged.
//
// https://c2sp.org/tlog-witness#add-checkpoint
func (c *Client) AddCheckpoint(ctx context.Context, old uint64, proof []audit.Hash,
	signed []byte) (audit.Cosignature, error) {
	cosignature, err := c.addCheckpoint(ctx, Request{old, proof, signed})
	if err != nil {
		return audit.Cosignature{}, fmt.Errorf("ask witness %s: %w", c.Key.Name(), err)
	}
	return cosignature, nil
}

// RetryError is an ErrUnavailable with the time to wait.
type RetryError struct {
	Status int           // 429, 500 or above
	After  time.Duration // 0: unknown
}

// Error includes the status.
func (e *RetryError) Error() string {
	return fmt.Sprintf("%v: status %d", ErrUnavailable, e.Status)
}

// Unwrap returns ErrUnavailable.
func (e *RetryError) Unwrap() error { return ErrUnavailable }

func (c *Client) addCheckpoint(ctx context.Context, r Request) (none audit.Cosignature, err error) {
	end := bytes.LastIndex(r.Checkpoint, []byte("\n\n"))
	if end < 0 || len(r.Proof) > MaxProof {
		return none, fmt.Errorf("%w: not sent", ErrMalformed)
	}
	body := r.Marshal()
	if len(body) > MaxRequest {
		return none, fmt.Errorf("%w: not sent", ErrTooLarge)
	}
	a, err := c.post(ctx, body)
	if err != nil {
		return none, err
	}
	if a.code != http.StatusOK {
		return none, a.refusal()
	}
	return c.verify(string(r.Checkpoint[:end+1]), a.body)
}

// response is the answer of a witness.
type response struct {
	code   int
	header http.Header
	body   []byte
}

func (c *Client) post(ctx context.Context, body []byte) (*response, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	timed, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(timed, http.MethodPost, strings.TrimRight(c.URL, "/")+"/add-checkpoint",
		bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "text/plain; charset=utf-8")
	req.Header.Set("User-Agent", userAgent)
	client := http.Client{}
	if c.HTTP != nil {
		client = *c.HTTP
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := client.Do(req)
	if err != nil {
		return nil, passing(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }() // only read
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, passing(ctx, err)
	case len(answer) > maxAnswer:
		return nil, fmt.Errorf("%w: more than %d bytes", ErrAnswer, maxAnswer)
	}
	return &response{resp.StatusCode, resp.Header, answer}, nil
}

// passing returns the error for a request that got no answer, usually [ErrUnavailable].
func passing(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var named *url.Error // its text repeats the address
	if errors.As(err, &named) {
		err = named.Err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// refusal returns the error for a status. It omits the witness's text, which could contain
// anything.
func (r *response) refusal() error {
	code := r.code
	if code == http.StatusConflict {
		return r.conflict()
	}
	if code == http.StatusTooManyRequests || code >= 500 {
		seconds, _ := strconv.ParseUint(r.header.Get("Retry-After"), 10, 16) // dates are not supported
		return &RetryError{code, time.Duration(seconds) * time.Second}
	}
	for _, s := range statuses {
		if s.code == code {
			return s.err
		}
	}
	return fmt.Errorf("%w: status %d", ErrAnswer, code)
}

func (r *response) conflict() error {
	mediaType, _, _ := mime.ParseMediaType(r.header.Get("Content-Type"))
	size, err := strconv.ParseUint(strings.TrimSuffix(string(r.body), "\n"), 10, 64)
	if mediaType != sizeType || err != nil || string(r.body) != strconv.FormatUint(size, 10)+"\n" {
		return fmt.Errorf("%w: conflict without a size", ErrAnswer)
	}
	return &ConflictError{size}
}

// verify finds and checks the cosignature of the checkpoint's text among the signature lines of an
// answer.
func (c *Client) verify(text string, answer []byte) (none audit.Cosignature, err error) {
	n, err := note.Open([]byte(text+"\n"+string(answer)), note.VerifierList(c.Key))
	if err != nil {
		return none, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	cosignature, ok := c.Key.Cosignature(n)
	if !ok || n.Text != text { // the answer may contain another empty line
		return none, fmt.Errorf("%w: cosignature of another checkpoint", ErrAnswer)
	}
	skew := c.MaxSkew
	if skew == 0 {
		skew = DefaultMaxSkew
	}
	if off := time.Unix(cosignature.Time(), 0).Sub(c.Now()); off.Abs() > skew {
		return none, fmt.Errorf("%w: its clock is off by %s", ErrAnswer, off.Round(time.Second))
	}
	return cosignature, nil
}
