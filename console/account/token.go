package account

import (
	"context"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofline/proofline/console/account/pgaccount"
	"github.com/proofline/proofline/internal/invalid"
)

// TokenPrefix begins every API token, so that scanners can find leaked ones.
const TokenPrefix = "plt_" //nolint:gosec // a prefix

// Lifetimes of tokens.
const (
	TokenLife    = 90 * 24 * time.Hour  // default
	MaxTokenLife = 365 * 24 * time.Hour // a year
)

// maxTokens is the number of tokens that an organization may have.
const maxTokens = 100

// TokenCached is how long a node uses a token without reading it again. A revoked token keeps
// working that long on other nodes.
const TokenCached = 5 * time.Second

// tokenUsedInterval is the precision of a token's time of last use.
const tokenUsedInterval = time.Minute

// TokenInfo is a token without its secret.
type TokenInfo struct {
	ID      uuid.UUID
	Name    string
	Scopes  Scope
	MadeBy  string
	Created time.Time
	Expires time.Time
	Used    *time.Time // time of last use, to the minute; nil: never used
}

func newTokenInfo(t pgaccount.Token) TokenInfo {
	return TokenInfo{t.ID, t.Name, Scope(t.Scopes), t.MadeBy, t.Created, t.Expires, t.Used}
}

// NewToken describes a token to create.
type NewToken struct {
	Name   string
	Scopes Scope
	Life   time.Duration // 0: [TokenLife]
}

// Tokens manages the API tokens of organizations.
type Tokens struct {
	store    *pgaccount.Tokens
	activity *recorder
	random   random
	now      func() time.Time
	cache    tokenCache
}

// Make creates a token in the actor's organization, with no scopes that the actor lacks. The
// text is shown only once and cannot be recovered.
func (ts *Tokens) Make(ctx context.Context, by Actor, n NewToken) (text string, info TokenInfo, err error) {
	if !by.May(Admin) {
		return "", info, ErrForbidden
	}
	n, err = checkToken(n)
	if err != nil {
		return "", info, err
	}
	if !by.May(n.Scopes) {
		return "", info, ErrForbidden
	}
	count, err := ts.store.Count(ctx, by.Org)
	if err != nil {
		return "", info, err
	}
	if count >= maxTokens {
		return "", info, &LimitError{Max: maxTokens, Objects: "tokens"}
	}
	id, err := ts.random.id()
	if err != nil {
		return "", info, err
	}
	text, hash, err := ts.random.secret(TokenPrefix)
	if err != nil {
		return "", info, err
	}
	now := ts.now()
	t := pgaccount.Token{Org: by.Org, ID: id, Name: n.Name, Scopes: uint8(n.Scopes), MadeBy: by.Name, Created: now,
		Expires: now.Add(n.Life)}
	if err := ts.store.Add(ctx, t, hash); err != nil {
		return "", info, mapError(err)
	}
	detail := map[string]any{"token_id": id.String(), "scopes": n.Scopes.List(),
		"expires": t.Expires.UTC().Format(time.RFC3339)}
	return text, newTokenInfo(t), ts.activity.record(ctx, by, "token.make", n.Name, detail)
}

// checkToken fills in defaults and validates n.
func checkToken(n NewToken) (NewToken, error) {
	var wrong invalid.List
	name, ok := normalName(n.Name)
	if !ok {
		wrong.Add("name", wantName)
	}
	n.Name = name
	if n.Scopes&allScopes == 0 || n.Scopes&^allScopes != 0 {
		wrong.Add("scopes", "must be one or more of read, pull, connect, operate and admin")
	}
	if n.Life == 0 {
		n.Life = TokenLife
	}
	if n.Life < time.Minute || n.Life > MaxTokenLife {
		wrong.Add("expires", "must be a minute to a year from now")
	}
	return n, wrong.Err()
}

// List returns the tokens of the actor's organization, newest first.
func (ts *Tokens) List(ctx context.Context, by Actor) ([]TokenInfo, error) {
	if !by.May(Admin) {
		return nil, ErrForbidden
	}
	stored, err := ts.store.List(ctx, by.Org)
	if err != nil {
		return nil, err
	}
	list := make([]TokenInfo, len(stored))
	for i, t := range stored {
		list[i] = newTokenInfo(t)
	}
	return list, nil
}

// Revoke deletes a token of the actor's organization, effective at once on this node and
// within [TokenCached] on others. It returns [ErrNotFound].
func (ts *Tokens) Revoke(ctx context.Context, by Actor, id uuid.UUID) error {
	if !by.May(Admin) {
		return ErrForbidden
	}
	name, err := ts.store.Remove(ctx, by.Org, id)
	if err != nil {
		return mapError(err)
	}
	ts.cache.clear()
	return ts.activity.record(ctx, by, "token.revoke", name, map[string]any{"token_id": id.String()})
}

// Authenticate returns the actor of a bearer token, or [ErrToken].
func (ts *Tokens) Authenticate(ctx context.Context, bearer string) (Actor, error) {
	if isSecret(TokenPrefix, bearer) != nil {
		return Actor{}, ErrToken
	}
	now, hash := ts.now(), [32]byte(hashOf(bearer))
	t, ok := ts.cache.get(hash, now)
	if !ok {
		generation := ts.cache.generation()
		stored, err := ts.store.ByHash(ctx, hash[:], now)
		if err != nil {
			return Actor{}, mapNotFound(err, ErrToken)
		}
		t = cachedToken{Token: stored, until: now.Add(TokenCached)}
		ts.cache.put(hash, t, generation)
		if t.Used == nil || now.Sub(*t.Used) >= tokenUsedInterval {
			if err := ts.store.Touch(ctx, t.Org, t.ID, now); err != nil {
				return Actor{}, err
			}
		}
	}
	if !now.Before(t.Expires) {
		return Actor{}, ErrToken
	}
	return Actor{Kind: Token, ID: t.ID, Name: t.Name, Org: t.Org, Scopes: Scope(t.Scopes), Expires: t.Expires}, nil
}

// cachedToken is a recently read token.
type cachedToken struct {
	pgaccount.Token
	until time.Time // time from which the token must be read again
}

// maxCachedTokens limits the memory that the cache uses.
const maxCachedTokens = 10_000

// tokenCache holds recently read tokens by hash.
type tokenCache struct {
	mu      sync.Mutex
	found   map[[32]byte]cachedToken
	cleared int // number of calls of clear
}

func (c *tokenCache) get(hash [32]byte, now time.Time) (cachedToken, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.found[hash]
	return t, ok && now.Before(t.until)
}

// generation returns a number that changes when the cache is cleared.
func (c *tokenCache) generation() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cleared
}

// put stores a token unless the cache was cleared since generation was read.
func (c *tokenCache) put(hash [32]byte, t cachedToken, generation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if generation != c.cleared {
		return
	}
	if c.found == nil || len(c.found) >= maxCachedTokens {
		c.found = map[[32]byte]cachedToken{}
	}
	c.found[hash] = t
}

func (c *tokenCache) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found, c.cleared = nil, c.cleared+1
}
