-- +goose Up

-- The visitor for whom a connector redeemed the pass. If the response is lost, the connector may
-- redeem it again for the same visitor. Null: unknown.
alter table room_sessions add column redeemed_by bytea check (octet_length(redeemed_by) = 16);
grant update (redeemed_by) on room_sessions to proofline_server;

-- Free sessions: visitors admitted without a ticket while the gate was open. Times are in
-- milliseconds since the Unix epoch, by the database's clock.
create table room_free_sessions (
  room_id    uuid   not null,
  session_id uuid   not null, -- 16 random bytes, made by the connector
  began_ms   bigint not null, -- time of the connector's report
  until_ms   bigint not null, -- extended by activity
  primary key (room_id, session_id)
);

create index room_free_sessions_live on room_free_sessions (room_id, until_ms);
create index room_free_sessions_begun on room_free_sessions (room_id, began_ms);

-- Connectors that share a room's quota of free sessions, one row per process.
create table room_connectors (
  room_id uuid   not null,
  node    uuid   not null, -- random, made by the process
  seen_ms bigint not null, -- by the database's clock, accurate to two seconds
  primary key (room_id, node)
);

-- Fail-open intervals reported by connectors. Those with the same claim become one entry of the
-- transcript.
create table room_fail_open (
  room_id     uuid   not null,
  report_id   uuid   not null, -- random, made by the connector
  from_ms     bigint not null,
  until_ms    bigint not null check (from_ms < until_ms),
  requests    bigint not null check (requests >= 0),
  claim       uuid,
  claimed_at  timestamptz,     -- when a node started to record it; retried after a minute
  recorded_at timestamptz,     -- when it was added to the transcript
  primary key (room_id, report_id)
);

create index room_fail_open_waiting on room_fail_open (room_id) where recorded_at is null;

grant select, insert, update, delete on room_free_sessions, room_connectors, room_fail_open to proofline_server;
