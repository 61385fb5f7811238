-- +goose Up

-- For whom a pass was redeemed, as the connector says it: if the answer is lost,
-- the same one may ask again. Null: it did not say.
alter table room_sessions add column redeemed_by bytea check (octet_length(redeemed_by) = 16);

-- Sessions of visitors who passed an open gate, without a ticket. Times are
-- milliseconds since the Unix epoch, of the database.
create table room_free_sessions (
  room_id    uuid   not null,
  session_id uuid   not null, -- 16 random bytes, made by the connector
  began_ms   bigint not null, -- when the server heard of it
  until_ms   bigint not null, -- with activity
  primary key (room_id, session_id)
);

create index room_free_sessions_live on room_free_sessions (room_id, until_ms);
create index room_free_sessions_begun on room_free_sessions (room_id, began_ms);

-- The connectors that share what an open gate lets in, a row a process.
create table room_connectors (
  room_id uuid   not null,
  node    uuid   not null, -- random, made by the process
  seen_ms bigint not null, -- of the database, to two seconds
  primary key (room_id, node)
);

-- Times in which a connector let everybody in, as it reported them. Those of one
-- claim are one entry of the transcript.
create table room_unguarded (
  room_id     uuid   not null,
  report_id   uuid   not null, -- random, made by the connector
  from_ms     bigint not null,
  until_ms    bigint not null check (from_ms < until_ms),
  requests    bigint not null check (requests >= 0),
  claim       uuid,
  claimed_at  timestamptz,     -- when a node took it on; again after a minute
  recorded_at timestamptz,     -- it is in the transcript
  primary key (room_id, report_id)
);

create index room_unguarded_waiting on room_unguarded (room_id) where recorded_at is null;

grant select, insert, update, delete on room_free_sessions, room_connectors, room_unguarded to proofline_server;
