package pgaccount

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Organization is one row of the organizations table.
type Organization struct {
	ID            uuid.UUID
	Slug          string
	Name          string
	RequireFactor bool // all members need a second factor
	Created       time.Time
	Logo          string // version of the logo; "": none
}

const orgColumns = `org_id, slug, name, require_second_factor, created_at, logo`

// Organizations stores organizations with their logos, in the table organizations.
type Organizations struct{ pool *pgxpool.Pool }

// Logo is an organization's logo.
type Logo struct {
	MediaType string
	Image     []byte
}

// Logo returns the logo of an organization, or [ErrNotFound].
func (s *Organizations) Logo(ctx context.Context, id uuid.UUID) (Logo, error) {
	return one[Logo](ctx, s.pool, "read logo", `select logo_type, logo_image from organizations
		where org_id = $1 and logo <> ''`, id)
}

// SetLogo stores a logo and its version; "" removes the logo.
func (s *Organizations) SetLogo(ctx context.Context, id uuid.UUID, version string, logo Logo) error {
	return must(ctx, s.pool, "change logo", `update organizations set logo = $2, logo_type = $3, logo_image = $4
		where org_id = $1`, id, version, logo.MediaType, logo.Image)
}

// Add stores an organization, or returns [ErrExists].
func (s *Organizations) Add(ctx context.Context, o Organization) error {
	return exec(ctx, s.pool, "store organization", `insert into organizations (org_id, slug, name, created_at)
		values ($1, $2, $3, $4)`,
		o.ID, o.Slug, o.Name, o.Created)
}

// Get returns one organization, or [ErrNotFound].
func (s *Organizations) Get(ctx context.Context, id uuid.UUID) (Organization, error) {
	return one[Organization](ctx, s.pool, "read organization", `select `+orgColumns+
		` from organizations where org_id = $1`, id)
}

// BySlug returns one organization, or [ErrNotFound].
func (s *Organizations) BySlug(ctx context.Context, slug string) (Organization, error) {
	return one[Organization](ctx, s.pool, "read organization", `select `+orgColumns+
		` from organizations where slug = $1`, slug)
}

// List returns all organizations by slug.
func (s *Organizations) List(ctx context.Context) ([]Organization, error) {
	return all[Organization](ctx, s.pool, "list organizations", `select `+orgColumns+
		` from organizations order by slug`)
}

// Set stores the name and whether members need a second factor.
func (s *Organizations) Set(ctx context.Context, id uuid.UUID, name string, requireFactor bool) error {
	return must(ctx, s.pool, "change organization", `update organizations set name = $2, require_second_factor = $3
		where org_id = $1`, id, name, requireFactor)
}
