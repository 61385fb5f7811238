package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/room/mark"
)

var (
	// ErrURL is returned for a text that does not name a bucket.
	ErrURL = errors.New("not the URL of a bucket")
	// errOvertaken is returned by a write that another one has overtaken.
	errOvertaken = errors.New("another process wrote the mark")
	// errBroken is returned for an object that holds no mark of its log.
	errBroken = errors.New("an object holds no mark")
)

// The defaults for AWS, and for a store with an address of its own, whose region means nothing.
const (
	awsEndpoint   = "https://s3.amazonaws.com"
	defaultRegion = "us-east-1"
)

const (
	maxObject    = 1 << 10          // a mark takes about 150 bytes
	metadataWait = 2 * time.Second  // for the credentials that a cloud gives to its machines
	probeName    = "probe"          // of an object, and its content; a room's name is followed by a slash
	wrongETag    = "proofline-none" // no object has it
)

// store reads and writes objects.
type store struct {
	client         *minio.Client
	bucket, prefix string
	node           string
	conditional    atomic.Bool // the store heeds If-Match, as of the latest probe
}

// object is a stored mark.
type object struct {
	pglog.Mark
	etag string // empty: there is no object that a write may replace
}

var bucketURL = regexp.MustCompile(`^s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:/([A-Za-z0-9/_.=-]*))?$`)

// openStore connects to nothing. Endpoint, region and credentials come from the environment, as for AWS's own tools.
func openStore(text, node string) (*store, error) {
	parts := bucketURL.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("%w: %.200q", ErrURL, text)
	}
	s := &store{bucket: parts[1], prefix: strings.Trim(parts[2], "/"), node: node}
	if s.prefix != "" {
		s.prefix += "/"
	}
	endpoint, err := url.Parse(firstOf(awsEndpoint, "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
	if err != nil || endpoint.Scheme != "http" && endpoint.Scheme != "https" || endpoint.Host == "" ||
		strings.Trim(endpoint.Path, "/") != "" || endpoint.User != nil {
		return nil, fmt.Errorf("%w: AWS_ENDPOINT_URL must be a scheme and a host, such as https://s3.example.com", ErrURL)
	}
	region := firstOf("", "AWS_REGION", "AWS_DEFAULT_REGION")
	if region == "" && endpoint.String() != awsEndpoint {
		region = defaultRegion
	}
	isSecure := endpoint.Scheme == "https"
	transport, err := minio.DefaultTransport(isSecure)
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	s.client, err = minio.New(endpoint.Host, &minio.Options{
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{},
			&credentials.IAM{Client: &http.Client{Timeout: metadataWait}},
		}),
		Secure: isSecure, Region: region, Transport: transport, MaxRetries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("open bucket: %w", err)
	}
	return s, nil
}

// firstOf returns the first variable of the environment that is set, else otherwise.
func firstOf(otherwise string, names ...string) string {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return otherwise
}

// name returns the name of a log's object: the one that this node writes.
func (s *store) name(log mark.Log) string {
	name := s.shared(log)
	if !s.conditional.Load() {
		name += "." + s.node
	}
	return name
}

// shared returns the name that all nodes use where the store heeds conditions.
func (s *store) shared(log mark.Log) string {
	return fmt.Sprintf("%s%s/%08x", s.prefix, strings.ReplaceAll(log.Slug, "/", "_"), log.Key)
}

// probe finds out whether the store answers and heeds conditions.
func (s *store) probe(ctx context.Context) error {
	put := func(options minio.PutObjectOptions) error { // not an empty body, which some stores refuse
		_, err := s.client.PutObject(ctx, s.bucket, s.prefix+probeName, strings.NewReader(probeName),
			int64(len(probeName)), options)
		return err
	}
	if err := put(minio.PutObjectOptions{}); err != nil {
		return fmt.Errorf("probe bucket: %w", err)
	}
	var wrong minio.PutObjectOptions
	wrong.SetMatchETag(wrongETag)
	err := put(wrong)
	switch status := minio.ToErrorResponse(err).StatusCode; {
	case err == nil || status == http.StatusNotImplemented || status == http.StatusBadRequest:
		s.conditional.Store(false)
	case status == http.StatusPreconditionFailed:
		s.conditional.Store(true)
	default:
		return fmt.Errorf("probe bucket: %w", err)
	}
	return nil
}

// slugs returns the rooms that have marks.
func (s *store) slugs(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	for o := range s.client.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix}) {
		if o.Err != nil {
			return nil, fmt.Errorf("list bucket: %w", o.Err)
		}
		slug, isDir := strings.CutSuffix(strings.TrimPrefix(o.Key, s.prefix), "/")
		if isDir && !strings.Contains(slug, "/") {
			found[strings.ReplaceAll(slug, "_", "/")] = true
		}
	}
	return found, nil
}

// read returns the highest stored mark of a log; zero: there is none.
func (s *store) read(ctx context.Context, log mark.Log) (object, error) {
	if s.conditional.Load() {
		return s.get(ctx, log, s.shared(log))
	}
	var highest object
	options := minio.ListObjectsOptions{Prefix: s.shared(log)}
	for o := range s.client.ListObjectsIter(ctx, s.bucket, options) {
		err := o.Err
		var m object
		if err == nil {
			m, err = s.get(ctx, log, o.Key)
		}
		if err != nil {
			return highest, fmt.Errorf("list bucket: %w", err)
		}
		if m.Size > highest.Size {
			highest = m
		}
	}
	return highest, nil
}

// get reads an object; zero: there is none.
func (s *store) get(ctx context.Context, log mark.Log, name string) (o object, err error) {
	body, info, _, err := (&minio.Core{Client: s.client}).GetObject(ctx, s.bucket, name, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("read %s: %w", name, err)
	}
	defer func() { _ = body.Close() }()
	text, err := io.ReadAll(io.LimitReader(body, maxObject))
	if err != nil {
		return o, fmt.Errorf("read %s: %w", name, err)
	}
	found, m, ok := mark.ParseLine(text)
	if !ok || found != log {
		return o, fmt.Errorf("%w: %s", errBroken, name)
	}
	return object{m, info.ETag}, nil
}

// write stores a mark and returns the object's ETag. old is the ETag of the object that it replaces; empty: there is
// none.
func (s *store) write(ctx context.Context, log mark.Log, m pglog.Mark, old string) (etag string, err error) {
	line := mark.AppendLine(nil, log, m)
	options := minio.PutObjectOptions{ContentType: "text/plain"}
	switch {
	case !s.conditional.Load():
	case old == "":
		options.SetMatchETagExcept("*")
	default:
		options.SetMatchETag(old)
	}
	name := s.name(log)
	info, err := s.client.PutObject(ctx, s.bucket, name, bytes.NewReader(line), int64(len(line)), options)
	switch minio.ToErrorResponse(err).StatusCode {
	case http.StatusPreconditionFailed, http.StatusConflict:
		return "", errOvertaken
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}
	return info.ETag, nil
}
