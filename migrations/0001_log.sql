-- +goose Up

-- The server works as this role: it may add to the log and never change it.
-- It cannot log in; a server's login role is made a member of it.
-- +goose StatementBegin
do $$
begin
  if not exists (select from pg_roles where rolname = 'proofline_server') then
    begin
      create role proofline_server nologin;
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
  published_at   timestamptz not null default now()
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
