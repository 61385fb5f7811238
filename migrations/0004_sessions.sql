-- +goose Up

-- Keys of passes made by rotation, sealed as those of room_keys; the first one
-- is there. The newest signs, the others are published until no pass that they
-- signed is valid.
create table room_pass_keys (
  room_id    uuid  not null,
  key_id     text  not null, -- RFC 7638 thumbprint
  sealed     bytea not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (room_id, key_id)
);

-- What became of a pass after the admission. A session without a row ends when
-- its pass expires. Times are milliseconds since the Unix epoch.
create table room_sessions (
  room_id     uuid   not null,
  pass_id     uuid   not null,
  expires_ms  bigint not null, -- the pass
  until_ms    bigint not null, -- the session
  redeemed_at timestamptz,
  released_at timestamptz,
  primary key (room_id, pass_id)
);

-- The sessions that last longer or shorter than their passes say.
create index room_sessions_shifted on room_sessions (room_id, greatest(expires_ms, until_ms)) where until_ms <> expires_ms;

-- Who calls: the clock where there is no row.
create table room_flow (
  room_id uuid    primary key,
  pull    boolean not null -- only a backend that asks for people
);

-- Places on their way to another device: the visitor's secret, sealed with a code
-- that is in the link alone. The latest of a ticket counts, and only once.
create table room_transfers (
  room_id    uuid  not null,
  ticket     uuid  not null,
  code_hash  bytea not null, -- SHA-256
  sealed     bytea not null,
  expires_at timestamptz not null,
  primary key (room_id, ticket)
);
create unique index room_transfers_code on room_transfers (room_id, code_hash);
create index room_transfers_expired on room_transfers (expires_at);

grant select, insert on room_pass_keys to proofline_server;
grant select, insert, update on room_sessions, room_flow to proofline_server;
grant select, insert, update, delete on room_transfers to proofline_server;
