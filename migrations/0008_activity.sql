-- +goose Up

-- The activity log. An entry is written before the operation, so that no operation lacks one. Its
-- outcome is added afterwards.
create table activity_log (
  org_id     uuid not null,
  entry_id     uuid not null, -- version 7, sorted by time
  at         timestamptz not null default clock_timestamp(),
  actor_kind text not null check (actor_kind in ('person', 'token', 'server')),
  actor_id   uuid not null,
  actor      text not null, -- e-mail address or token name at that time
  verb       text not null, -- such as 'room.pause'
  object     text not null, -- what was changed, such as a room's slug
  detail     jsonb not null default '{}',
  outcome    text not null default '' check (outcome in ('', 'done', 'refused', 'failed')), -- empty: unknown
  primary key (org_id, entry_id)
);

create index activity_log_by_object on activity_log (org_id, object, entry_id);
-- Entries arrive and are deleted in the order of their time.
create index activity_log_by_time on activity_log using brin (at);

-- The server deletes entries that are kept no longer, but none of the latest day: an intruder with its login cannot
-- remove traces that are fresh, but all others.
alter table activity_log enable row level security;
create policy reads on activity_log for select to proofline_server using (true);
create policy adds on activity_log for insert to proofline_server with check (true);
create policy finishes on activity_log for update to proofline_server using (true);
create policy forgets on activity_log for delete to proofline_server using (at < clock_timestamp() - interval '1 day');

-- Unpublished rooms, as the JSON of their configuration.
create table drafts (
  org_id     uuid   not null,
  draft_id   uuid   not null,
  config     jsonb  not null,
  version    bigint not null default 1,
  created_at timestamptz not null default now(),
  changed_at timestamptz not null default now(),
  changed_by text   not null,
  primary key (org_id, draft_id)
);

-- Responses of the management API to requests with an idempotency key, so that repeating a request
-- has no further effect.
create table idempotency_keys (
  org_id     uuid  not null,
  key        text  not null,
  request    bytea not null, -- SHA-256 of method, path and body
  status     int,            -- null while in progress
  headers    jsonb,
  body       bytea,
  created_at timestamptz not null default now(),
  primary key (org_id, key)
);

create index idempotency_keys_by_age on idempotency_keys (created_at);

grant select, insert, update (outcome), delete on activity_log to proofline_server;
grant select, insert, update, delete on drafts, idempotency_keys to proofline_server;
