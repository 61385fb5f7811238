package server

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/proofline/proofline/audit/pglog"
	"github.com/proofline/proofline/cmd/proofline/internal/cli"
	"github.com/proofline/proofline/cmd/proofline/internal/secret"
	"github.com/proofline/proofline/migrations"
	"github.com/proofline/proofline/room/keys"
	"github.com/proofline/proofline/room/mark/bucket"
)

// Explain adds exit code and hint to an error of a server's start.
func Explain(err error) error {
	var unreachable *pgconn.ConnectError
	switch {
	case errors.Is(err, ErrNoMasterKey):
		return cli.Usage(err, "make one with: proofline master-key FILE; "+
			"then give it with --master-key FILE, or its text in PROOFLINE_MASTER_KEY")
	case errors.Is(err, ErrNoDatabase):
		return cli.Usage(err, "also give --database-url, the URL for the server's own role")
	case errors.Is(err, migrations.ErrOwner):
		return cli.Failed(err, "start once with --owner-database-url, the URL of the schema's owner")
	case errors.Is(err, keys.ErrMasterKey) || errors.Is(err, ErrKeyLost):
		return cli.Failed(err, "rooms open only with the key they were created with: restore it from your backup")
	case errors.Is(err, secret.ErrExposed):
		return cli.Failed(err, "restrict that file to its owner with chmod 600")
	case errors.Is(err, bucket.ErrURL):
		return cli.Usage(fmt.Errorf("--marks-s3: %w", err), "give s3://BUCKET/PREFIX")
	case errors.Is(err, pglog.ErrPooler):
		return cli.Failed(err, "give the address of PostgreSQL itself, or of a pool with pool_mode = session")
	case errors.As(err, &unreachable):
		return cli.Unreachable(err, "check the database URL, and that the database is running")
	case errors.Is(err, ErrMetricsAddr):
		return cli.Failed(err, "choose another address with --metrics-addr, such as 127.0.0.1:9090")
	case errors.Is(err, syscall.EADDRINUSE):
		return cli.Failed(err, "another program listens there: choose another address with --addr")
	case errors.Is(err, fs.ErrPermission):
		return cli.Failed(err, "choose another directory with --data, or run as its owner")
	}
	return cli.Failed(err, "")
}
