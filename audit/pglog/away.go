package pglog

import (
	"context"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsAway reports whether an error means that the database is temporarily unable to work, so that
// the same request may succeed a little later: it is unreachable, starting, stopping, recovering,
// being compared with the nodes' marks, demoted to a standby, or out of disk, memory or
// connections. Context errors belong to the caller and do not count.
func IsAway(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if refused, ok := errors.AsType[*pgconn.PgError](err); ok {
		return isAwayCode(refused.Code)
	}
	if _, isHTTP := errors.AsType[*url.Error](err); isHTTP {
		return false // reported by another server
	}
	_, unreachable := errors.AsType[*pgconn.ConnectError](err)
	_, broken := errors.AsType[net.Error](err)
	return unreachable || broken || errors.Is(err, ErrUnsettled) || pgconn.SafeToRetry(err) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed)
}

// isAwayCode follows https://www.postgresql.org/docs/current/errcodes-appendix.html.
func isAwayCode(code string) bool {
	for _, class := range []string{"08", "53", "57P", "58"} { // connection, resources, operator, system
		if strings.HasPrefix(code, class) {
			return true
		}
	}
	switch code {
	case "25006", "40001", "40P01", "55P03": // read only, serialization, deadlock, lock not available
		return true
	}
	return false
}
