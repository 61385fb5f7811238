-- +goose Up

-- The nodes on this database, one row per process, for the dashboard.
create table nodes (
  node_id    uuid primary key,
  name       text not null, -- of the machine
  version    text not null, -- of the program
  started_at timestamptz not null,
  seen_at    timestamptz not null default clock_timestamp(),
  healthy    boolean not null,
  rooms      integer not null, -- loaded rooms
  goroutines integer not null,
  heap       bigint  not null, -- bytes
  ahead_ms   bigint  not null, -- the database's clock minus the node's
  refused    jsonb   not null  -- requests refused since its start, by the limit that refused them
);

-- The history of rooms by minute. Every node that runs the room sends the row, and the first one
-- stays. Sums count from the creation of the room to the end of the minute.
create table live_minutes (
  room_id    uuid        not null,
  at         timestamptz not null, -- start of the minute
  arrivals   bigint      not null,
  drawn      bigint      not null,
  called     bigint      not null,
  admitted   bigint      not null,
  no_shows   bigint      not null,
  gone       bigint      not null, -- left or revoked
  waiting    bigint      not null, -- in line and not called, at the end
  active     bigint      not null, -- expected, or at the site, at the end
  peak       bigint      not null, -- peak arrivals per second
  per_minute bigint      not null, -- outflow in force
  max_active bigint      not null, -- 0: no limit
  paused     boolean     not null,
  primary key (room_id, at)
);

-- Rows arrive and are pruned in the order of their time.
create index live_minutes_by_time on live_minutes using brin (at);

-- Summaries of ended rooms, derived from their transcripts.
create table room_summaries (
  room_id uuid primary key,
  summary jsonb not null,
  made_at timestamptz not null default clock_timestamp()
);

grant select, insert, update, delete on nodes to proofline_server;
grant select, insert, delete on live_minutes to proofline_server;
grant select, insert on room_summaries to proofline_server;
