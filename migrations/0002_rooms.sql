-- +goose Up

-- The part of a room that is not in its transcript. The id is derived from the slug, so a slug is
-- unique without a second index.
create table rooms (
  room_id    uuid primary key,
  slug       text not null,
  origin     text not null, -- name of the log, fixed at creation
  title      text not null,
  created_at timestamptz not null default now(),
  ended_at   timestamptz,   -- a hint which rooms need no node; the transcript decides
  -- The log's public key, if another server created and ended the room: its private keys stay there.
  -- Null: this server created it.
  vkey       text
);

-- Private keys, sealed with the server's master key (AES-256-GCM).
create table room_keys (
  room_id uuid  not null,
  purpose text  not null check (purpose in ('log', 'vrf', 'pass')),
  sealed  bytea not null,
  primary key (room_id, purpose)
);

-- The log of rooms, which has an entry for each room of this server: its name, fixed when it begins, and its private
-- key, sealed with the server's master key. Its entries are in log_bundles, under the largest id.
create table room_log (
  is_only boolean primary key default true check (is_only),
  origin  text    not null,
  sealed  bytea   not null
);

-- Messages to visitors in canonical form, by their hash in the transcript.
create table room_messages (
  room_id uuid  not null,
  hash    bytea not null check (octet_length(hash) = 32),
  text    text  not null,
  primary key (room_id, hash)
);

-- The organizer's audit report of an ended room, an HTML page.
create table room_reports (
  room_id uuid        primary key,
  made_at timestamptz not null default now(),
  entries bigint      not null, -- size of the audited transcript
  level   smallint    not null, -- assurance level; 0: a check failed
  html    bytea       not null  -- compressed with gzip
);

grant select, insert, update on room_reports to proofline_server;
grant select, insert, update on rooms to proofline_server;
grant select, insert on room_keys, room_log, room_messages to proofline_server;
