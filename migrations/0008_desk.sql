-- +goose Up

-- What people and programs did to the rooms of an organization. A deed is noted
-- before it is done, so that none lacks its note; the outcome follows.
create table acts (
  org_id     uuid not null,
  act_id     uuid not null, -- version 7: in the order of time
  at         timestamptz not null default clock_timestamp(),
  actor_kind text not null check (actor_kind in ('person', 'token', 'server')),
  actor_id   uuid not null,
  actor      text not null, -- e-mail address or name of the token, as it was then
  verb       text not null, -- such as 'room.pause'
  object     text not null, -- what it was done to, such as a room's slug
  detail     jsonb not null default '{}',
  outcome    text not null default '' check (outcome in ('', 'done', 'refused', 'failed')), -- empty: nobody knows
  primary key (org_id, act_id)
);

create index acts_by_object on acts (org_id, object, act_id);

-- Rooms that are not published, as the JSON of their configuration.
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

-- Answers to requests of the management API that came with a key, so that
-- sending one again does nothing again.
create table idempotency_keys (
  org_id     uuid  not null,
  key        text  not null,
  request    bytea not null, -- SHA-256 of method, path and body
  status     int,            -- null while it is under way
  headers    jsonb,
  body       bytea,
  created_at timestamptz not null default now(),
  primary key (org_id, key)
);

create index idempotency_keys_by_age on idempotency_keys (created_at);

grant select, insert, update (outcome) on acts to proofline_server;
grant select, insert, update, delete on drafts, idempotency_keys to proofline_server;
