-- +goose Up

-- Pass keys made by rotation, sealed like those of room_keys, which has the first one. The newest key
-- signs; older keys are published while passes signed by them are valid.
create table room_pass_keys (
  room_id    uuid  not null,
  key_id     text  not null, -- RFC 7638 thumbprint
  sealed     bytea not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (room_id, key_id)
);

-- Sessions of passes. A session without a row ends when its pass expires. Times are in milliseconds
-- since the Unix epoch.
create table room_sessions (
  room_id     uuid   not null,
  pass_id     uuid   not null,
  expires_ms  bigint not null, -- of the pass
  until_ms    bigint not null, -- of the session
  redeemed_at timestamptz,
  released_at timestamptz,
  primary key (room_id, pass_id)
);

-- Sessions that end earlier or later than their passes expire.
create index room_sessions_shifted on room_sessions (room_id, greatest(expires_ms, until_ms)) where until_ms <> expires_ms;
-- Passes are made and deleted in the order of their time.
create index room_sessions_by_time on room_sessions using brin (expires_ms);

-- The server deletes sessions that ended a day ago and their passes expired, and no others: a pass must not be redeemed
-- twice. It cannot change when a pass expires, see the grants below, so nothing makes that time come earlier.
alter table room_sessions enable row level security;
create policy reads on room_sessions for select to proofline_server using (true);
create policy adds on room_sessions for insert to proofline_server with check (true);
create policy changes on room_sessions for update to proofline_server using (true);
create policy forgets on room_sessions for delete to proofline_server
  using (greatest(expires_ms, until_ms) < extract(epoch from clock_timestamp() - interval '1 day') * 1000);

-- The source of calls. No row: the room's clock.
create table room_flow (
  room_id uuid    primary key,
  pull    boolean not null -- only a backend calls visitors
);

-- Places on their way to another device: the visitor's secret, sealed with a code that only the
-- link contains. Only a ticket's latest code is valid, once.
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
grant select, insert, update on room_flow to proofline_server;
grant select, insert, update (until_ms, redeemed_at, released_at), delete on room_sessions to proofline_server;
grant select, insert, update, delete on room_transfers to proofline_server;
