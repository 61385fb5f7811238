-- +goose Up

-- Where organizations want to hear of events.
create table hook_endpoints (
  org_id        uuid   not null,
  endpoint_id   uuid   not null,
  url           text   not null,
  events        text[] not null, -- names; empty for all
  rooms         text[] not null, -- slugs; empty for all
  description   text   not null,
  secret        bytea  not null, -- sealed with the master key
  former_secret bytea,           -- of before the rotation; signs too until former_until
  former_until  timestamptz,
  disabled      text   not null default '' check (disabled in ('', 'by hand', 'gone', 'failing', 'overfull')),
  created_at    timestamptz not null,
  since         timestamptz not null, -- hears of what happens from then on
  failures      integer     not null default 0, -- attempts since the latest that succeeded
  failing_since timestamptz,
  primary key (org_id, endpoint_id)
);

-- Who is told when something needs a person. No row: nobody.
create table hook_alerts (
  org_id     uuid primary key,
  emails     text[]   not null,
  endpoints  uuid[]   not null,
  kinds      text[]   not null,
  no_shows   smallint not null check (no_shows between 1 and 100), -- percent that are worth an alert
  since      timestamptz not null
);

-- When an organization was last alerted of something in a room; '' for no room.
create table hook_alerted (
  org_id uuid not null,
  kind   text not null,
  room   text not null,
  at     timestamptz not null,
  primary key (org_id, kind, room)
);

-- How far the transcripts were turned into deliveries.
create table hook_cursors (
  room_id   uuid primary key,
  org_id    uuid    not null,
  next      bigint  not null, -- the first entry that was not looked at
  state     jsonb   not null, -- what later events need to know of earlier entries
  done      boolean not null default false, -- the room has ended
  looked_at timestamptz not null
);

create index hook_cursors_by_org on hook_cursors (org_id);

-- The outbox and the log of it. The target is an endpoint; for mail it is zero.
create table hook_deliveries (
  org_id       uuid    not null,
  delivery_id  uuid    not null, -- of version 7: in the order of making
  target       uuid    not null,
  recipient    text    not null, -- URL or e-mail address
  type         text    not null,
  room         text    not null, -- slug, '' for none
  payload      text    not null,
  created_at   timestamptz not null,
  state        text    not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  tries        integer not null default 0, -- of the schedule of retries
  attempts     integer not null default 0, -- altogether
  due_at       timestamptz,                -- the next attempt; null unless waiting
  leased_until timestamptz,                -- a node is at it
  primary key (org_id, delivery_id),
  check ((state = 'waiting') = (due_at is not null))
);

create index hook_deliveries_due on hook_deliveries (org_id, target, due_at) where due_at is not null;
create index hook_deliveries_taken on hook_deliveries (org_id, target) where leased_until is not null;
create index hook_deliveries_mail on hook_deliveries (org_id) where due_at is not null and target = '00000000-0000-0000-0000-000000000000';
create index hook_deliveries_by_target on hook_deliveries (org_id, target, delivery_id);
create index hook_deliveries_by_age on hook_deliveries (created_at);

create table hook_attempts (
  org_id      uuid    not null,
  delivery_id uuid    not null,
  number      integer not null, -- from 1
  at          timestamptz not null,
  took_ms     bigint  not null,
  status      integer not null, -- of HTTP or SMTP; 0 without an answer
  error       text    not null, -- '' for success
  response    text    not null, -- its beginning, printable
  primary key (org_id, delivery_id, number)
);

grant select, insert, update, delete on hook_endpoints, hook_alerts, hook_alerted, hook_cursors, hook_deliveries, hook_attempts to proofline_server;
