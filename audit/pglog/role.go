package pglog

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// RoleError is returned when the server's login role can change the log, because it is, or can
// become, a role with that right.
type RoleError struct {
	Login string // role in the database URL
	Role  string // role that it can become, often itself
	Power string // what that role may do, such as "is a superuser"
}

func (e *RoleError) Error() string {
	if e.Login == e.Role {
		return fmt.Sprintf("the database role %s %s", e.Login, e.Power)
	}
	return fmt.Sprintf("the database role %s can become %s, which %s", e.Login, e.Role, e.Power)
}

// paths finds a role that can change the log and that a session can take on with set role, reset
// role or by granting it to itself. It checks the session's user, whatever its current role.
const paths = `
	select session_user, r.rolname, p.power
	from pg_roles r, lateral (
		select case
			when r.rolsuper then 'is a superuser'
			when r.rolcreaterole then 'may create roles and join others'
			when r.rolname in ('pg_write_all_data', 'pg_write_server_files', 'pg_execute_server_program') then 'may write everywhere'
			when r.oid in (select datdba from pg_database where datname = current_database()) then 'owns the database'
			when exists (
				select from pg_class c join pg_namespace n on n.oid = c.relnamespace
				where c.oid in ('log_heads'::regclass, 'log_bundles'::regclass, 'log_tile_roots'::regclass)
					and r.oid in (c.relowner, n.nspowner)
			) then 'owns the tables of the log'
			when exists (
				select from (values ('log_heads'::regclass), ('log_bundles'), ('log_tile_roots')) as t (c)
				where has_table_privilege(r.oid, c, 'update, delete, truncate, trigger')
			) or exists (
				select from (values ('log_bundles'::regclass), ('log_tile_roots')) as t (c)
				where has_any_column_privilege(r.oid, c, 'update')
			) or exists (
				select from (values ('room_id'), ('archived')) as t (c)
				where has_column_privilege(r.oid, 'log_heads', c, 'update')
			) then 'may change the tables of the log'
		end
	) as p (power)
	where pg_has_role(session_user, r.oid, 'member') and p.power is not null
	order by not r.rolsuper, r.rolname <> session_user, r.rolname
	limit 1`

// CheckRole returns a [*RoleError] if a session of the pool could change entries of the log.
func CheckRole(ctx context.Context, pool *pgxpool.Pool) error {
	var e RoleError
	err := pool.QueryRow(ctx, paths).Scan(&e.Login, &e.Role, &e.Power)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil
	case err != nil:
		return fmt.Errorf("check the database role: %w", err)
	}
	return &e
}
