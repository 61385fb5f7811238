-- +goose Up

-- In tokens.scopes 16 is connect.

-- What signs the rules of an organization's sites.
create table site_keys (
  org_id     uuid  primary key,
  name       text  not null, -- of the key; connectors hold it, so it stays when the server's address changes
  sealed     bytea not null, -- Ed25519 seed, sealed with the master key
  created_at timestamptz not null default now()
);

-- What organizations protect. The row of a site that is deleted stays: the
-- serials of the next one of that name go on where its own ended, for
-- connectors refuse smaller ones.
create table sites (
  org_id     uuid   not null,
  site       text   not null check (site ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  serial     bigint not null check (serial >= 1), -- of the rules in force
  hosts      text[] not null, -- that these rules name
  rooms      text[] not null, -- URLs of rooms that they name
  deleted_at timestamptz,
  primary key (org_id, site)
);

-- Rules, of now and of before.
create table site_versions (
  org_id     uuid   not null,
  site       text   not null,
  serial     bigint not null,
  rules      text   not null, -- JSON, as its owner wrote it
  changed_at timestamptz not null default clock_timestamp(),
  changed_by text   not null,
  primary key (org_id, site, serial)
);

-- Connectors that report, a row a process.
create table connectors (
  org_id  uuid   not null,
  node    text   not null, -- random, made by the process
  site    text   not null, -- '' when its rules are of no site of this server
  serial  bigint not null, -- of the rules that it goes by
  kind    text   not null check (kind in ('middleware', 'proxy', 'nginx', 'edge')),
  version text   not null,
  counts  jsonb  not null, -- by name, since the process began
  seen_at timestamptz not null,
  primary key (org_id, node)
);

create index connectors_by_age on connectors (seen_at);

grant select, insert on site_keys to proofline_server;
grant select, insert, update on sites to proofline_server;
grant select, insert, delete on site_versions to proofline_server;
grant select, insert, update, delete on connectors to proofline_server;
