-- +goose Up

-- The owners of rooms. Every server has the first one.
create table organizations (
  org_id     uuid primary key,
  slug       text not null unique check (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  name       text not null,
  created_at timestamptz not null default now(),
  -- What the organization may use at most; 0: no limit.
  max_rooms   bigint not null default 0 check (max_rooms >= 0),   -- that have not ended
  max_waiting bigint not null default 0 check (max_waiting >= 0), -- visitors in line in all rooms
  max_streams bigint not null default 0 check (max_streams >= 0), -- event streams open at each server
  max_entries bigint not null default 0 check (max_entries >= 0), -- entries of all transcripts
  -- Shown on pages of rooms without a logo of their own.
  logo       text not null default '', -- version of the image; empty: none
  logo_type  text,                     -- media type
  logo_image bytea
);

insert into organizations (org_id, slug, name)
values ('00000000-0000-8000-8000-000000000001', 'main', 'My organization');

-- Existing and unassigned rooms belong to the first organization. There is no foreign key, because
-- rooms are distributed by room_id and organizations are not.
alter table rooms
  add column org_id       uuid not null default '00000000-0000-8000-8000-000000000001',
  add column host         text,        -- custom host that the room is published under
  add column archived_at  timestamptz, -- left out of lists from this time on
  add column rehearsal_of uuid;        -- the rehearsed room or draft

create index rooms_by_org on rooms (org_id, created_at);

-- Custom hosts. A host is used once its organization has proven ownership in the DNS. Until then,
-- other organizations may claim it, too.
create table hosts (
  org_id      uuid not null,
  host        text not null, -- lower case, Punycode, without port
  token       text not null, -- value of the TXT record _proofline.HOST
  verified_at timestamptz,
  primary key (org_id, host)
);

create unique index hosts_verified on hosts (host) where verified_at is not null;

grant select, insert, update on organizations to proofline_server;
grant select, insert, update, delete on hosts to proofline_server;
