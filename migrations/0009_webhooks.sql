-- +goose Up

-- Webhook endpoints.
create table webhook_endpoints (
  org_id        uuid   not null,
  endpoint_id   uuid   not null,
  url           text   not null,
  events        text[] not null, -- names; empty: all
  rooms         text[] not null, -- slugs; empty: all
  description   text   not null,
  secret        bytea  not null, -- sealed with the master key
  former_secret bytea,           -- previous secret after a rotation; also signs until former_until
  former_until  timestamptz,
  disabled      text   not null default '' check (disabled in ('', 'by hand', 'gone', 'failing', 'overfull')),
  created_at    timestamptz not null,
  since         timestamptz not null, -- gets events from this time on
  failures      integer     not null default 0, -- attempts since the last success
  failing_since timestamptz,
  primary key (org_id, endpoint_id)
);

-- Alert settings. No row: no recipients.
create table alert_settings (
  org_id     uuid primary key,
  emails     text[]   not null,
  endpoints  uuid[]   not null,
  kinds      text[]   not null,
  no_shows   smallint not null check (no_shows between 1 and 100), -- no-show rate for an alert, in percent
  since      timestamptz not null
);

-- The time of an organization's latest alert of a kind about a subject, such as a room; '': no
-- subject.
create table alerts_sent (
  org_id uuid not null,
  kind   text not null,
  room   text not null,
  at     timestamptz not null,
  primary key (org_id, kind, room)
);

-- Positions up to which transcripts have been turned into deliveries.
create table transcript_cursors (
  room_id   uuid primary key,
  org_id    uuid    not null,
  next      bigint  not null, -- index of the next entry
  state     jsonb   not null, -- what later events need to know about earlier entries
  done      boolean not null default false, -- the room has ended
  looked_at timestamptz not null
);

create index transcript_cursors_by_org on transcript_cursors (org_id);

-- The outbox and its log. The target is an endpoint, or zero for mail.
create table deliveries (
  org_id       uuid    not null,
  delivery_id  uuid    not null, -- version 7, sorted by time of creation
  target       uuid    not null,
  recipient    text    not null, -- URL or e-mail address
  type         text    not null,
  room         text    not null, -- slug; '': none
  payload      text    not null,
  created_at   timestamptz not null,
  state        text    not null default 'waiting' check (state in ('waiting', 'delivered', 'failed')),
  tries        integer not null default 0, -- position in the retry schedule
  attempts     integer not null default 0, -- in total
  due_at       timestamptz,                -- time of the next attempt; null unless waiting
  leased_until timestamptz,                -- end of a node's reservation
  primary key (org_id, delivery_id),
  check ((state = 'waiting') = (due_at is not null))
);

create index deliveries_due on deliveries (org_id, target, due_at) where due_at is not null;
create index deliveries_taken on deliveries (org_id, target) where leased_until is not null;
create index deliveries_mail on deliveries (org_id) where due_at is not null and target = '00000000-0000-0000-0000-000000000000';
create index deliveries_by_target on deliveries (org_id, target, delivery_id);
create index deliveries_by_age on deliveries (created_at);

create table delivery_attempts (
  org_id      uuid    not null,
  delivery_id uuid    not null,
  number      integer not null, -- from 1
  at          timestamptz not null,
  took_ms     bigint  not null,
  status      integer not null, -- HTTP or SMTP status; 0: no response
  error       text    not null, -- '': success
  response    text    not null, -- beginning of the response, printable
  primary key (org_id, delivery_id, number)
);

grant select, insert, update, delete on webhook_endpoints, alert_settings, alerts_sent, transcript_cursors, deliveries, delivery_attempts to proofline_server;
