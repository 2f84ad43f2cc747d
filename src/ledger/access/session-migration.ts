/** Sessions of the dashboard, and the people who sign in at a provider. */
export const SESSIONS = `
  -- hash: of the secret in the cookie. credential_hash: of the secret that was presented at the sign-in.
  CREATE TABLE sessions (
    hash BLOB PRIMARY KEY,
    credential_hash BLOB NOT NULL,
    created_at INTEGER NOT NULL,
    used_at INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sessions_by_credential ON sessions (credential_hash, created_at);
  CREATE INDEX sessions_by_age ON sessions (created_at);

  -- The person behind a credential whose secret nobody knows.
  CREATE TABLE people (
    credential INTEGER PRIMARY KEY REFERENCES credentials (id) ON DELETE CASCADE,
    issuer TEXT NOT NULL,
    subject TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (issuer, subject)
  ) STRICT;
  `;
