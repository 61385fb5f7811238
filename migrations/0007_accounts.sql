-- +goose Up

alter table organizations add column require_second_factor boolean not null default false;

-- People with accounts. Their organizations are in members.
create table people (
  person_id      uuid primary key,
  email          text not null unique check (email = lower(email)),
  name           text not null,
  password       text,   -- argon2id, PHC string; null: signs in by OpenID Connect only
  factor         bytea,  -- TOTP secret, sealed; null: none
  factor_pending bytea,  -- not confirmed by a code yet
  factor_step    bigint not null default 0, -- time step of the newest code used; each code works once
  created_at     timestamptz not null
);

create table members (
  org_id     uuid not null,
  person_id  uuid not null,
  role       text not null check (role in ('owner', 'operator', 'viewer')),
  created_at timestamptz not null,
  primary key (org_id, person_id)
);

create index members_by_person on members (person_id);

-- Recovery codes, each of which replaces the second factor once.
create table recovery_codes (
  person_id uuid  not null,
  hash      bytea not null check (octet_length(hash) = 32),
  primary key (person_id, hash)
);

-- Identities at OpenID Connect issuers, fixed by the first sign-in.
create table identities (
  issuer    text not null,
  subject   text not null,
  person_id uuid not null,
  primary key (issuer, subject),
  unique (person_id, issuer)
);

-- Identities of people whose account was removed, as SHA-256 of issuer and subject: only an invitation lets them in
-- again, even if everybody of their domain may have an account.
create table former_identities (
  hash       bytea primary key check (octet_length(hash) = 32),
  removed_at timestamptz not null -- the latest time
);

-- The hash is SHA-256 of the token in the cookie.
create table sessions (
  session_id   uuid  primary key,
  hash         bytea not null unique check (octet_length(hash) = 32),
  person_id    uuid  not null,
  org_id       uuid  not null, -- in which the person is working
  device       text  not null,
  created_at   timestamptz not null,
  seen_at      timestamptz not null, -- to the minute
  confirmed_at timestamptz not null  -- last proof of identity
);

create index sessions_by_person on sessions (person_id);

-- One-time links that add their holder to the organization with a role. The hash is the SHA-256 of
-- the token.
create table invitations (
  org_id        uuid not null,
  invitation_id uuid not null,
  hash          bytea not null unique check (octet_length(hash) = 32),
  role          text not null check (role in ('owner', 'operator', 'viewer')),
  email         text,             -- null: valid for any address
  setup         boolean not null, -- for the first owner
  recovers      boolean not null, -- resets the password of the person with that address
  invited_by    text not null,
  created_at    timestamptz not null,
  expires_at    timestamptz not null,
  primary key (org_id, invitation_id)
);

-- Tokens of the management API. The hash is the SHA-256 of the token.
create table tokens (
  org_id     uuid not null,
  token_id   uuid not null,
  hash       bytea not null unique check (octet_length(hash) = 32),
  name       text not null,
  scopes     smallint not null, -- 1 read, 2 pull, 4 operate, 8 admin
  made_by    text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at    timestamptz, -- to the minute
  primary key (org_id, token_id)
);

-- Failed sign-ins by account and by network; key is the SHA-256 of either. The level falls over
-- time.
create table attempts (
  key     bytea primary key check (octet_length(key) = 32),
  level   double precision not null,
  at      timestamptz not null,
  next_at timestamptz not null -- earliest time of the next attempt
);

create index attempts_by_time on attempts (at);

grant select, insert, update (removed_at), delete on former_identities to proofline_server;
grant select, insert, update, delete on people, members, recovery_codes, identities, sessions, invitations, tokens, attempts to proofline_server;
