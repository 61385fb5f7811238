package web

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/proofline/proofline/audit"
	"github.com/proofline/proofline/console/account"
	"github.com/proofline/proofline/console/control"
	"github.com/proofline/proofline/console/live"
	"github.com/proofline/proofline/console/rehearse"
	"github.com/proofline/proofline/console/webhook"
	"github.com/proofline/proofline/fairness"
	"github.com/proofline/proofline/internal/invalid"
	"github.com/proofline/proofline/internal/wire"
	"github.com/proofline/proofline/room"
	"github.com/proofline/proofline/room/clock"
	"github.com/proofline/proofline/room/door"
	"github.com/proofline/proofline/room/evidence"
	"github.com/proofline/proofline/room/register"
	"github.com/proofline/proofline/room/session"
	"github.com/proofline/proofline/room/transfer"
	"github.com/proofline/proofline/web/console/shell"
	"github.com/proofline/proofline/web/crowded"
	"github.com/proofline/proofline/web/health"
	"github.com/proofline/proofline/web/limit"
	"github.com/proofline/proofline/web/manage"
	"github.com/proofline/proofline/web/poll"
	"github.com/proofline/proofline/web/reply"
)

var (
	// errTooLarge and errMediaType are shared with the management API.
	errTooLarge  = manage.ErrTooLarge
	errMediaType = manage.ErrMediaType
	// errCrossOrigin means that a page of another site sent a request with a visitor's cookies.
	errCrossOrigin = errors.New("the request comes from another site")
	// errNoPlace means that a visitor sent no secret.
	errNoPlace = errors.New("the request has neither the visitor's cookie nor a secret")
	// errInternal is the public form of all errors that are not in the table.
	errInternal = errors.New("internal error; the server's log has details under the request_id")
)

// networkLimit is the problem type for a network that has used up a budget.
const networkLimit = "network-limit"

// problemTypes is where PROBLEMS.md describes each type.
const problemTypes = documentation + "/blob/main/web/PROBLEMS.md#"

// kind is a kind of error and its answer.
type kind struct {
	match  func(error) (detail string, ok bool)
	status int
	name   string // last part of the type URI
	title  string
	retry  time.Duration // Retry-After; 0: none
}

// kinds maps all errors to their answers.
var kinds = []kind{
	{as[*door.MalformedError], http.StatusBadRequest, "credential-malformed", "Malformed credential", 0},
	{as[*invalid.Error], http.StatusBadRequest, "invalid", "Invalid input", 0},
	{as[*door.UnknownMethodError], http.StatusBadRequest, "credential-unknown-method", "Unknown method", 0},
	{as[*door.MissingError], http.StatusForbidden, "credential-missing", "Credential missing", 0},
	{as[*door.InvalidError], http.StatusForbidden, "credential-invalid", "Invalid credential", 0},
	{as[*door.UsedError], http.StatusConflict, "credential-used", "Credential used", 0},
	{as[*door.FullError], http.StatusConflict, "method-full", "Limit of the method reached", 0},
	{as[*door.WorkError], http.StatusConflict, "work-not-yet", "Work not yet possible", time.Second},
	{is(door.ErrLate), http.StatusGone, "credential-late", "Too late for credentials", 0},
	{is(manage.ErrToken, shell.ErrSignIn), http.StatusUnauthorized, "unauthorized", "Not authorized", 0},
	{is(session.ErrPass), http.StatusUnauthorized, "invalid-pass", "Invalid pass", 0},
	{is(account.ErrForbidden, shell.ErrConfirm), http.StatusForbidden, "forbidden", "Not allowed", 0},
	{is(room.ErrSecret), http.StatusForbidden, "wrong-secret", "Wrong secret", 0},
	{is(errVerdict), http.StatusForbidden, "verdict", "Refused by a check in front", 0},
	{is(errCrossOrigin, shell.ErrCrossOrigin), http.StatusForbidden, "cross-origin", "Cross-origin request", 0},
	{is(errNoPlace), http.StatusForbidden, "no-place", "No place", 0},
	{is(room.ErrNotFound, register.ErrNotFound, audit.ErrTilePath, account.ErrNotFound, control.ErrDraftUnknown,
		rehearse.ErrUnknown), http.StatusNotFound, "not-found", "Not found", 0},
	{is(manage.ErrOrganization), http.StatusNotFound, "unknown-organization", "Unknown organization", 0},
	{is(room.ErrTicketUnknown), http.StatusNotFound, "unknown-ticket", "Unknown ticket", 0},
	{is(transfer.ErrCode), http.StatusGone, "transfer-over", "Link used or too old", 0},
	{is(session.ErrPassUnknown), http.StatusNotFound, "unknown-pass", "Unknown pass", 0},
	{as[*room.EarlyError], http.StatusConflict, "too-early", "Not open yet", time.Second},
	{is(room.ErrFull), http.StatusConflict, "full", "Line full", 0},
	{is(room.ErrNotCalled), http.StatusConflict, "not-called", "Not called yet", poll.Min},
	{is(room.ErrClaimsFrozen), http.StatusConflict, "claims-frozen", "Claims frozen", poll.Min},
	{is(room.ErrExists, room.ErrTaken), http.StatusConflict, "room-exists", "Room exists", 0},
	{is(account.ErrExists), http.StatusConflict, "exists", "Already taken", 0},
	{is(account.ErrLastOwner), http.StatusConflict, "last-owner", "Last owner", 0},
	{as[*account.LimitError], http.StatusConflict, "too-many", "Too many", 0},
	{is(room.ErrQuota), http.StatusConflict, "quota", "Quota of the organization reached", 0},
	{is(account.ErrInUse), http.StatusConflict, "in-use", "In use", 0},
	{is(account.ErrUnverified), http.StatusConflict, "unverified", "Not verified", 0},
	{is(control.ErrNotEnded, control.ErrNotOver, live.ErrNotEnded), http.StatusConflict, "not-ended", "Not ended", 0},
	{is(control.ErrNotOwn, control.ErrMembers, control.ErrCodes), http.StatusConflict, "no-codes",
		"No codes for this method", 0},
	{is(webhook.ErrDisabled), http.StatusConflict, "webhook-disabled", "Webhook disabled", 0},
	{is(rehearse.ErrRunning), http.StatusConflict, "rehearsing", "Rehearsing already", 0},
	{is(manage.ErrKeyUnderWay), http.StatusConflict, "key-under-way", "Request under way", 0},
	{is(manage.ErrKeyDone), http.StatusConflict, "key-done", "Request done", 0},
	{is(session.ErrPassUsed), http.StatusConflict, "pass-used", "Pass used", 0},
	{is(session.ErrPassUnredeemed), http.StatusConflict, "pass-unredeemed", "Pass not redeemed", 0},
	{is(evidence.ErrRound), http.StatusConflict, "round", "Wrong round", 0},
	{is(room.ErrDrawing), http.StatusConflict, "drawing", "Being drawn", poll.Min},
	{is(room.ErrNotPull), http.StatusConflict, "not-pull", "Not called by pull", 0},
	{is(shell.ErrSwitched), http.StatusConflict, "switched", "Another organization", 0},
	{as[*fairness.Violation], http.StatusConflict, "against-the-rules", "Against the rules of the room", 0},
	{is(room.ErrClosed), http.StatusGone, "closed", "Closed", 0},
	{is(room.ErrExpired), http.StatusGone, "expired", "Ticket expired", 0},
	{is(room.ErrSettled, room.ErrEnded), http.StatusGone, "settled", "Place settled", 0},
	{is(session.ErrSessionOver), http.StatusGone, "session-over", "Session over", 0},
	{is(control.ErrChanged), http.StatusPreconditionFailed, "changed", "Changed in the meantime", 0},
	{is(errTooLarge, shell.ErrTooLarge), http.StatusRequestEntityTooLarge, "too-large", "Body too large", 0},
	{is(errMediaType), http.StatusUnsupportedMediaType, "media-type", "Unsupported media type", 0},
	{is(manage.ErrKeyReused), http.StatusUnprocessableEntity, "key-reused", "Key used for another request", 0},
	{as[*account.RateError], http.StatusTooManyRequests, "rate-limited", "Too many attempts", time.Second},
	{as[*limit.Error], http.StatusTooManyRequests, networkLimit, "Network limit reached", time.Second},
	{isLimit(false), http.StatusTooManyRequests, "room-limit", "Limit of the room reached", time.Second},
	{isLimit(true), http.StatusTooManyRequests, "server-limit", "Limit of the server reached", time.Second},
	{is(manage.ErrSimulating), http.StatusServiceUnavailable, "simulating", "Simulating already", 2 * time.Second},
	{is(live.ErrComputing), http.StatusServiceUnavailable, "computing", "Being computed", time.Second},
	{is(control.ErrTooLong), http.StatusConflict, "too-long", "Too long", 0},
	{is(room.ErrBusy, rehearse.ErrBusy, control.ErrAuditing), http.StatusServiceUnavailable, "busy", "Busy",
		time.Second},
	{is(room.ErrStreams, live.ErrStreams), http.StatusServiceUnavailable, "too-many-streams", "Too many streams",
		poll.Max},
	{as[*room.StaleError], http.StatusServiceUnavailable, "stale", "Out of date", 2 * time.Second},
	{is(clock.ErrStep), http.StatusServiceUnavailable, "clock", "Clock jumped", 5 * time.Second},
	{is(register.ErrHeld, room.ErrRegressed), http.StatusServiceUnavailable, "records-missing", "Records missing",
		10 * time.Second},
	{is(room.ErrArchived), http.StatusServiceUnavailable, "records-archived", "Records archived", 10 * time.Second},
	{is(room.ErrAbandoned), http.StatusGone, "records-lost", "Records lost", 0},
	{is(room.ErrStopping, rehearse.ErrStopping), http.StatusServiceUnavailable, "stopping", "Stopping",
		2 * time.Second},
	{notReady, http.StatusServiceUnavailable, "not-ready", "Not ready", 2 * time.Second},
	{tookTooLong, http.StatusServiceUnavailable, "timeout", "Took too long", 2 * time.Second},
	{is(errInternal), http.StatusInternalServerError, "internal", "Internal error", 0},
}

// is matches errors that wrap one of the targets, and returns the target's text only.
func is(targets ...error) func(error) (string, bool) {
	return func(err error) (string, bool) {
		for _, target := range targets {
			if errors.Is(err, target) {
				return target.Error(), true
			}
		}
		return "", false
	}
}

func as[T error](err error) (string, bool) {
	var target T
	if !errors.As(err, &target) {
		return "", false
	}
	return target.Error(), true
}

// isLimit matches the limit of joins of a room, or that of the server.
func isLimit(server bool) func(error) (string, bool) {
	return func(err error) (string, bool) {
		limit, ok := errors.AsType[*room.LimitError](err)
		if !ok || limit.Server != server {
			return "", false
		}
		return limit.Error(), true
	}
}

// notReady also matches the errors of an unreachable database.
func notReady(err error) (string, bool) {
	return health.ErrNotReady.Error(), errors.Is(err, health.ErrNotReady) || room.IsAway(err)
}

func tookTooLong(err error) (string, bool) {
	return "the request timed out before the server could handle it",
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// noType is the type of problems that the status describes completely.
const noType = "about:blank"

// problem is the body of an error, and the headers and words that accompany it.
type problem struct {
	wire.Problem

	retry time.Duration // Retry-After; 0: none
	words string        // text of the statement
}

// problems describes errors to clients.
type problems struct {
	ready func() bool // reports whether the server can accept joins
}

// describe converts an error to its public form; errors that are not in the table are internal.
func (p problems) describe(err error) problem {
	if routing := (*echo.HTTPError)(nil); errors.As(err, &routing) { // an error of Echo's router
		return problem{Problem: wire.Problem{
			Type: noType, Title: http.StatusText(routing.Code), Status: routing.Code,
		}}
	}
	for _, k := range kinds {
		if detail, ok := k.match(err); ok {
			found := problem{retry: k.retry, Problem: wire.Problem{
				Type: problemTypes + k.name, Title: k.title, Status: k.status, Detail: detail,
			}}
			found.add(err)
			return found
		}
	}
	if !p.ready() {
		return p.describe(health.ErrNotReady)
	}
	return p.describe(errInternal)
}

// add copies the details that an error carries besides its text.
func (p *problem) add(err error) {
	if early := (*room.EarlyError)(nil); errors.As(err, &early) {
		p.retry = max(p.retry, early.Wait)
	}
	if stale := (*room.StaleError)(nil); errors.As(err, &stale) {
		p.retry = max(p.retry, stale.Wait)
	}
	if often := (*account.RateError)(nil); errors.As(err, &often) {
		p.retry = max(p.retry, often.Wait)
	}
	if work := (*door.WorkError)(nil); errors.As(err, &work) {
		p.retry = max(p.retry, work.Wait)
	}
	p.Methods = door.Methods(err)
	if network := (*limit.Error)(nil); errors.As(err, &network) {
		p.retry = max(p.retry, network.Wait)
	}
	if full := (*room.LimitError)(nil); errors.As(err, &full) {
		p.retry = max(p.retry, full.Wait)
	}
	if lost := (*room.Regression)(nil); errors.As(err, &lost) && lost.Statement != "" {
		p.Statement, p.words = lost.Statement, lost.Words()
	}
	wrong := invalid.Problems(err)
	for _, field := range wrong[:min(len(wrong), invalid.Max)] {
		p.Errors = append(p.Errors, wire.FieldError(field))
	}
}

// errorAnswers answers requests that have failed.
type errorAnswers struct {
	problems problems
	renderer *renderer
	budgets  *budgets
	crowded  crowded.Pages
	log      *slog.Logger
}

// fail sends an error, as a page or a problem document.
func (e *errorAnswers) fail(c echo.Context, err error) {
	p := e.problems.describe(err)
	e.logFailure(c, p.Status, err)
	if c.Response().Committed {
		return // too late to send an error
	}
	h := c.Response().Header()
	if p.retry > 0 {
		askAgain(h, p.retry)
	}
	if p.Status == http.StatusUnauthorized {
		h["Www-Authenticate"] = []string{`Bearer realm="proofline"`}
	}
	p.Instance, p.RequestID = c.Request().URL.EscapedPath(), requestID(c)
	send := sendProblem
	if wantsPage(c, p) && e.chargeErrorPage(c, &p) == nil {
		send = e.sendErrorPage
	}
	if err := send(c, p); err != nil {
		e.log.DebugContext(c.Request().Context(), "cannot send the problem", "err", err, "request_id", requestID(c))
	}
}

func sendProblem(c echo.Context, p problem) error {
	body, err := json.Marshal(p.Problem)
	if err != nil {
		return err
	}
	return reply.Send(c, p.Status, []string{"application/problem+json"}, body)
}

// logFailure logs errors of the server itself. Unavailability is logged at debug level only,
// because the rooms log once that the database is unreachable.
func (e *errorAnswers) logFailure(c echo.Context, status int, err error) {
	level := slog.LevelError
	switch {
	case status < http.StatusInternalServerError:
		return
	case status == http.StatusServiceUnavailable:
		level = slog.LevelDebug
	}
	r := c.Request()
	attributes := []any{"method", r.Method, "path", r.URL.Path, "err", err, "request_id", requestID(c)}
	if p := (*panicError)(nil); errors.As(err, &p) {
		attributes = append(attributes, "stack", string(p.stack))
	}
	e.log.Log(r.Context(), level, "request failed", attributes...)
}
