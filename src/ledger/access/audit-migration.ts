/** Schema 9: entries of the audit are chained, and persons in them can be erased. */
export const AUDIT_CHAIN = `
  -- What identifies the person that an entry of the audit is about can be erased: the entry has only its salted digest.
  CREATE TABLE audit_persons (
    seq INTEGER PRIMARY KEY REFERENCES audit (seq),
    salt TEXT NOT NULL,
    email_hash TEXT NOT NULL,
    email_masked TEXT NOT NULL
  ) STRICT;
  INSERT INTO audit_persons
    SELECT seq, lower(hex(randomblob(32))), email_hash, email_masked FROM audit
    WHERE email_hash IS NOT NULL AND email_masked IS NOT NULL;
  CREATE TRIGGER audit_persons_never_change BEFORE UPDATE ON audit_persons
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  ALTER TABLE audit DROP COLUMN email_hash;
  ALTER TABLE audit DROP COLUMN email_masked;

  -- hash covers the hash of the entry before it. The first start fills it in earlier entries, which are then fixed, too.
  ALTER TABLE audit ADD COLUMN subject TEXT;
  ALTER TABLE audit ADD COLUMN person_digest TEXT;
  ALTER TABLE audit ADD COLUMN hash TEXT;
  DROP TRIGGER audit_is_append_only;
  CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit WHEN OLD.hash IS NOT NULL
    BEGIN SELECT RAISE(ABORT, 'the audit trail is append-only'); END;
  `;
