/** Schema 16: scopes, tenants, expiry and rotation of credentials. */
export const CREDENTIALS = `
  -- Separated by spaces; NULL: those of the role.
  ALTER TABLE credentials ADD COLUMN scopes TEXT;
  ALTER TABLE credentials ADD COLUMN expires_at INTEGER;

  -- The secrets that rotations have replaced, and until when they are accepted.
  CREATE TABLE credential_secrets (
    hash BLOB PRIMARY KEY,
    credential INTEGER NOT NULL REFERENCES credentials (id) ON DELETE CASCADE,
    valid_until INTEGER NOT NULL,
    last_used_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX credential_secrets_by_credential ON credential_secrets (credential);
  `;
