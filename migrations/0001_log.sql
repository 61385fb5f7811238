-- +goose Up

-- The server logs in as this role: it may add to the log and never change it.
-- It has no password, so PostgreSQL lets it in only where pg_hba.conf or a
-- password that the owner sets says so.
-- +goose StatementBegin
do $$
begin
  if not exists (select from pg_roles where rolname = 'proofline_server') then
    begin
      create role proofline_server login;
    exception when duplicate_object or unique_violation then
      null; -- a server on another database of this cluster was quicker
    end;
  end if;
  if not pg_has_role(current_user, 'proofline_server', 'member') then
    execute format('grant proofline_server to %I', current_user);
  end if;
  execute format('grant usage on schema %I to proofline_server', current_schema());
end
$$;
-- +goose StatementEnd

-- One row a room: the newest tree, and the newest one that is published.
-- Whoever holds the row's lock is the room's sequencer.
create table log_heads (
  room_id        uuid   primary key,
  size           bigint not null default 0 check (size >= 0),
  root           bytea  not null check (octet_length(root) = 32),
  time_ms        bigint not null default 0,  -- of the newest entry; never goes back
  checkpoint     text   not null default '', -- signed note of size and root; empty before the first entry
  published_size bigint not null default 0 check (published_size <= size),
  published      text   not null default '',
  published_at   timestamptz not null default now(),

  -- A log that was seen here with more entries than it has, or with others: until
  -- an operator has it recovered nothing is appended. No row is appended to while
  -- held_size is not null.
  held_size      bigint,                     -- of the log that was seen
  held_root      bytea  check (octet_length(held_root) = 32), -- null where a witness told the size alone
  held_by        text   not null default '', -- the node or the witness that saw it
  overruled      bigint not null default 0,  -- what witnesses say about sizes up to this does not count
  abandoned      text   not null default ''  -- the operator's signed statement that the log ends here
);

-- The servers of this database, and the history of it that each has compared with
-- what it remembers: see Incarnation in audit/pglog. Nothing is appended to a
-- database that was restored, or that took another's place, before all have.
create table log_nodes (
  node_id  uuid    primary key,
  compared text    not null default '',
  settled  boolean not null default false -- the node appends
);

-- The transcript, readable: select entry from log_entries order by index.
create table log_entries (
  room_id uuid   not null,
  index   bigint not null check (index >= 0),
  entry   text   not null,
  leaf    bytea  not null, -- SHA-256(0x00 || entry), RFC 6962
  primary key (room_id, index)
);

-- Roots of full tiles: hash number index at a tile level of 1 or more.
create table log_tile_roots (
  room_id uuid     not null,
  level   smallint not null check (level >= 1),
  index   bigint   not null,
  hash    bytea    not null check (octet_length(hash) = 32),
  primary key (room_id, level, index)
);

grant select, insert on log_entries, log_tile_roots to proofline_server;
grant select, insert, update on log_heads to proofline_server;
grant select, insert, update, delete on log_nodes to proofline_server;
-- A server that may not migrate still asks whether the schema is up to date.
grant select on goose_db_version to proofline_server;

-- A server that waits for a room's lock may end the connection that holds it, if
-- that is a server's, too, and PostgreSQL waits for the node at its other end.
-- This is all it may do to others: the function runs as the owner of the schema.
-- A holder is named by its backend and since when it has been silent; those named
-- in too_long are ended.
-- +goose StatementBegin
create function stalled_holders(waiters int[], too_long text[]) returns table (holder text, pid int, ended boolean)
language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
  select h.holder, h.pid, case when h.holder = any(too_long) then pg_terminate_backend(h.pid) else false end
  from (
    select concat_ws(' ', a.pid, a.backend_start, a.state_change) as holder, a.pid
    from pg_stat_activity a
    where a.pid in (select unnest(pg_blocking_pids(w)) from unnest(waiters) w)
      and a.datname = current_database() and a.application_name = 'proofline'
      and pg_has_role(a.usesysid, 'proofline_server', 'member')
      and a.wait_event = 'ClientRead' and a.state <> 'idle'
    offset 0) h
$$;
-- +goose StatementEnd
revoke execute on function stalled_holders from public;
grant execute on function stalled_holders to proofline_server;

-- What the servers see of this database's clock, which gives entries their time:
-- one that jumps is not followed before they agree that it did, a row a process,
-- or a person confirms it.
create table clock_views (
  node_id uuid    primary key,
  raw_ms  bigint  not null, -- what the clock said
  step_ms bigint  not null, -- by which it is beyond what the server expects
  agrees  boolean not null  -- the server's own clock agrees with it
);
create table clock_confirmations (
  id           bigint generated always as identity primary key,
  confirmed_at timestamptz not null default clock_timestamp()
);
grant select, insert, update on clock_views to proofline_server;
grant select, insert on clock_confirmations to proofline_server;
