-- +goose Up

-- The servers on this database, a row a process, for organizers to see.
create table nodes (
  node_id    uuid primary key,
  name       text not null, -- of the machine
  version    text not null, -- of the program
  started_at timestamptz not null,
  seen_at    timestamptz not null default clock_timestamp(),
  healthy    boolean not null,
  rooms      integer not null, -- in memory
  goroutines integer not null,
  heap       bigint  not null, -- bytes
  ahead_ms   bigint  not null, -- the database's clock, of the node's
  refused    jsonb   not null  -- requests since its start, by the limit of their network that refused them
);

-- A room minute by minute. Every node that runs the room sends the row, and the
-- first one stays. Sums are since the room was made, as of the minute's end.
create table live_minutes (
  room_id    uuid        not null,
  at         timestamptz not null, -- the minute's begin
  arrivals   bigint      not null,
  drawn      bigint      not null,
  called     bigint      not null,
  admitted   bigint      not null,
  no_shows   bigint      not null,
  gone       bigint      not null, -- left or revoked
  waiting    bigint      not null, -- in line and not called, at the end
  active     bigint      not null, -- called and expected, or at the site, at the end
  peak       bigint      not null, -- most arrivals in a second
  per_minute bigint      not null, -- outflow in force
  max_active bigint      not null, -- 0 for no limit
  paused     boolean     not null,
  primary key (room_id, at)
);

-- Rows come in the order of their time, and go so.
create index live_minutes_by_time on live_minutes using brin (at);

-- What became of a room that has ended, derived from its transcript.
create table room_summaries (
  room_id uuid primary key,
  summary jsonb not null,
  made_at timestamptz not null default clock_timestamp()
);

grant select, insert, update, delete on nodes to proofline_server;
grant select, insert, delete on live_minutes to proofline_server;
grant select, insert on room_summaries to proofline_server;
