-- +goose Up

-- The server logs in as this role, which can append to the log but never change it. The role has no
-- password, so it can log in only where pg_hba.conf allows it or after the owner has set a
-- password.
-- +goose StatementBegin
do $$
begin
  if not exists (select from pg_roles where rolname = 'proofline_server') then
    begin
      create role proofline_server login;
    exception when duplicate_object or unique_violation then
      null; -- a server on another database of this cluster created it first
    end;
  end if;
  if not pg_has_role(current_user, 'proofline_server', 'member') then
    execute format('grant proofline_server to %I', current_user);
  end if;
  execute format('grant usage on schema %I to proofline_server', current_schema());
end
$$;
-- +goose StatementEnd

-- One row per room: the newest tree, and the newest published one. The session that holds the row's
-- lock is the room's sequencer.
create table log_heads (
  room_id        uuid   primary key,
  size           bigint not null default 0 check (size >= 0),
  root           bytea  not null check (octet_length(root) = 32),
  time_ms        bigint not null default 0,  -- of the newest entry; never decreases
  checkpoint     text   not null default '', -- signed note of size and root; empty before the first entry
  published_size bigint not null default 0 check (published_size <= size),
  published      text   not null default '',
  published_at   timestamptz not null default now(),

  -- Set if a node or witness has seen this log with more entries, or with different ones. While
  -- held_size is not null, nothing is appended; an operator must recover the room.
  held_size      bigint,                     -- of the log that was seen
  held_root      bytea  check (octet_length(held_root) = 32), -- null if a witness reported only the size
  held_by        text   not null default '', -- the node or witness that saw it
  overruled      bigint not null default 0,  -- reports by witnesses about sizes up to this one are ignored
  abandoned      text   not null default '', -- the operator's signed statement that the log ends here

  -- The name of the log in the servers' archive of static files, if its entries and tile roots were moved there; empty:
  -- they are in the tables below, whose rows of an archived log are not read. Only the owner of the schema sets it.
  archived       text   not null default ''
);

-- The nodes on this database, and the incarnation of the database that each has compared with its
-- own memory: see Incarnation in audit/pglog. After a restore or failover, nothing is appended
-- until all nodes have compared.
create table log_nodes (
  node_id  uuid    primary key,
  compared text    not null default '',
  settled  boolean not null default false -- the node may append
);

-- The transcript. A row has consecutive entries of one tile of 256, in the form of an entry bundle
-- (https://c2sp.org/tlog-tiles#log-entries): each has its length as a big-endian 16-bit number, and
-- its text. An append stores one row, and one more for each tile that it begins.
create table log_bundles (
  room_id uuid   not null,
  first   bigint not null check (first >= 0), -- index of the first entry
  count   int    not null check (count between 1 and 256 - first % 256),
  entries bytea  not null check (octet_length(entries) >= 2 * count),
  primary key (room_id, first)
);

-- A row must begin where the entries of its room end, so an entry is never missing or stored twice.
-- Of two rows that are stored at once, the primary key refuses one.
-- +goose StatementBegin
create function log_continues() returns trigger language plpgsql as $$
declare
  size bigint := coalesce((select first + count from log_bundles where room_id = new.room_id order by first desc limit 1), 0);
begin
  if new.first <> size then
    raise unique_violation using message = format('the log has %s entries, and entry %s does not come next', size, new.first);
  end if;
  return new;
end
$$;
-- +goose StatementEnd
-- A session's own temporary table must not stand in for this one.
-- +goose StatementBegin
do $$
begin
  execute format('alter function log_continues() set search_path = %I, pg_temp', current_schema());
end
$$;
-- +goose StatementEnd
create trigger continues before insert on log_bundles for each row execute function log_continues();

-- Long rows are compressed, with lz4 if this PostgreSQL has it: pglz takes several times as long.
-- +goose StatementBegin
do $$
begin
  alter table log_bundles alter column entries set compression lz4;
exception when feature_not_supported then
  null;
end
$$;
-- +goose StatementEnd

-- +goose StatementBegin
create function log_split(entries bytea) returns setof text language plpgsql immutable strict as $$
declare
  at     int := 0;
  length int;
begin
  while at < octet_length(entries) loop
    length := get_byte(entries, at) * 256 + get_byte(entries, at + 1);
    return next convert_from(substring(entries from at + 3 for length), 'UTF8');
    at := at + 2 + length;
  end loop;
end
$$;
-- +goose StatementEnd

-- The transcript to read: select entry from log_entries order by index.
create view log_entries as
  select room_id, first + number - 1 as index, entry
  from log_bundles, log_split(entries) with ordinality as split (entry, number);

-- Roots of full tiles: the hash with number index at a tile level of 1 or more.
create table log_tile_roots (
  room_id uuid     not null,
  level   smallint not null check (level >= 1),
  index   bigint   not null,
  hash    bytea    not null check (octet_length(hash) = 32),
  primary key (room_id, level, index)
);

grant select, insert on log_bundles, log_tile_roots to proofline_server;
grant select on log_entries to proofline_server;
grant select on log_heads to proofline_server;
grant insert (room_id, size, root, time_ms, checkpoint, published_size, published, abandoned)
  on log_heads to proofline_server;
-- A head stays the one of its room, and an archived log stays archived.
grant update (size, root, time_ms, checkpoint, published_size, published, published_at, held_size, held_root, held_by,
  overruled, abandoned) on log_heads to proofline_server;
grant select, insert, update, delete on log_nodes to proofline_server;
-- Servers that may not migrate also check whether the schema is up to date.
grant select on goose_db_version to proofline_server;

-- A server that waits for a room's lock may end the connection that holds it, if that connection
-- belongs to a server, too, and PostgreSQL is waiting for its client. The function runs as the
-- owner of the schema and allows nothing else. A holder is identified by its backend and the start
-- of its silence; holders listed in too_long are ended.
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

-- The database's clock, which gives entries their times, as seen by each server process. After a
-- jump, the new time is used once the servers agree that the clock jumped, or an operator confirms
-- it.
create table clock_views (
  node_id uuid    primary key,
  raw_ms  bigint  not null, -- reading of the clock
  step_ms bigint  not null, -- difference from the time the server expects
  agrees  boolean not null  -- the server's own clock agrees with the reading
);
create table clock_confirmations (
  id           bigint generated always as identity primary key,
  confirmed_at timestamptz not null default clock_timestamp()
);
grant select, insert, update on clock_views to proofline_server;
grant select, insert on clock_confirmations to proofline_server;
