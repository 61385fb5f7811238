-- +goose Up

-- In tokens.scopes, 16 is connect.

-- The keys that sign the rules of an organization's sites.
create table site_keys (
  org_id     uuid  primary key,
  name       text  not null, -- of the key; connectors store it, so it does not change with the server's address
  sealed     bytea not null, -- Ed25519 seed, sealed with the master key
  created_at timestamptz not null default now()
);

-- Sites. The row of a deleted site stays, because a new site of the same name must continue its
-- versions: connectors refuse smaller ones.
create table sites (
  org_id     uuid   not null,
  site       text   not null check (site ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
  version    bigint not null check (version >= 1), -- of the current rules
  hosts      text[] not null, -- named by these rules
  rooms      text[] not null, -- URLs of rooms named by these rules
  deleted_at timestamptz,
  primary key (org_id, site)
);

-- Current and previous rules.
create table site_versions (
  org_id     uuid   not null,
  site       text   not null,
  version    bigint not null,
  rules      text   not null, -- JSON, as written by the site's owner
  changed_at timestamptz not null default clock_timestamp(),
  changed_by text   not null,
  primary key (org_id, site, version)
);

-- Reporting connectors, one row per process.
create table connectors (
  org_id  uuid   not null,
  node    text   not null, -- random, made by the process
  site    text   not null, -- '': its rules belong to no site of this server
  rules_version bigint not null, -- of the rules in use
  kind    text   not null check (kind in ('middleware', 'proxy', 'nginx', 'edge')),
  version text   not null,
  counts  jsonb  not null, -- by name, since the start of the process
  seen_at timestamptz not null,
  primary key (org_id, node)
);

create index connectors_by_age on connectors (seen_at);

grant select, insert on site_keys to proofline_server;
grant select, insert, update on sites to proofline_server;
grant select, insert, update (changed_by), delete on site_versions to proofline_server;
grant select, insert, update, delete on connectors to proofline_server;
