/**
 * The values of the metadata of a row that searches find, as in SEARCHABLE: name and value as text, at the top level, within the
 * limits in UTF-8, the first 32. None if the metadata is damaged.
 */
export const searchable = (row: string) => `
  SELECT key, CASE type WHEN 'text' THEN value ELSE ${row}.metadata -> fullkey END, ${row}.id
  FROM json_each(iif(json_valid(${row}.metadata), ${row}.metadata, NULL))
  WHERE type NOT IN ('object', 'array') AND octet_length(key) BETWEEN 1 AND 128
    AND (type <> 'text' OR octet_length(value) <= 256)
  LIMIT 32`;

/** The migration to schema 12, which never changes. */
export const SEARCH_MIGRATION = `
  CREATE INDEX submissions_tracked ON submissions (tracked_at);
  -- The rest of submissions_ended.
  CREATE INDEX submissions_ended_watched ON submissions (ended_at) WHERE ended_at IS NOT NULL AND watched = 1;
  CREATE INDEX deliveries_created ON deliveries (created_at);

  -- The metadata by value. The triggers maintain it, whatever writes the metadata.
  CREATE TABLE submission_metadata (
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    submission INTEGER NOT NULL,
    PRIMARY KEY (key, value, submission)
  ) STRICT, WITHOUT ROWID;
  CREATE TRIGGER metadata_added AFTER INSERT ON submissions WHEN NEW.metadata IS NOT NULL
    BEGIN INSERT OR IGNORE INTO submission_metadata ${searchable('NEW')}; END;
  CREATE TRIGGER metadata_removed AFTER DELETE ON submissions WHEN OLD.metadata IS NOT NULL
    BEGIN DELETE FROM submission_metadata WHERE (key, value, submission) IN (${searchable('OLD')}); END;
  CREATE TRIGGER metadata_changed AFTER UPDATE OF metadata ON submissions WHEN NEW.metadata IS NOT OLD.metadata
    BEGIN
      DELETE FROM submission_metadata WHERE (key, value, submission) IN (${searchable('OLD')});
      INSERT OR IGNORE INTO submission_metadata ${searchable('NEW')};
    END;
  -- The metadata of earlier submissions, whose rows are not written again.
  CREATE TEMP VIEW earlier AS SELECT id, metadata FROM submissions WHERE metadata IS NOT NULL;
  CREATE TEMP TRIGGER earlier_added INSTEAD OF INSERT ON earlier
    BEGIN INSERT OR IGNORE INTO submission_metadata ${searchable('NEW')}; END;
  INSERT INTO earlier SELECT id, metadata FROM earlier;
  DROP VIEW earlier;
  `;

/** The migration to schema 18: new submissions are added to the index of their metadata by metadata-index.ts, many at once. */
export const METADATA_MIGRATION = 'DROP TRIGGER metadata_added;';
