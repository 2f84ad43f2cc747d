/** The migration that adds reports. A released migration never changes. */
export const REPORTS = `
  -- Who tracked a submission over HTTP: the id of a credential, 0 for DAWATCH_API_KEY, -1 for DAWATCH_ADMIN_TOKEN. NULL: by
  -- another way, or before this column.
  ALTER TABLE submissions ADD COLUMN credential INTEGER;
  -- The polls of the submission until this change, and an upper bound of the time since it became final; NULL in older rows.
  ALTER TABLE history ADD COLUMN polls INTEGER;
  ALTER TABLE history ADD COLUMN lag_ms INTEGER;

  -- Sums over the submissions that ended in an hour or a day that begins at "start", derived from the history: see docs/reports.md.
  -- Amounts are decimal texts, because they exceed 64 bits.
  CREATE TABLE report_rows (
    unit TEXT NOT NULL CHECK (unit IN ('hour', 'day')),
    dimension TEXT NOT NULL,
    start INTEGER NOT NULL,
    upstream TEXT NOT NULL,
    value TEXT NOT NULL,
    finalized INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    unknown INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    expired INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    corrected INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    time_to_finality TEXT NOT NULL,
    lag TEXT NOT NULL,
    fees TEXT NOT NULL,
    data_billed TEXT NOT NULL,
    unbilled INTEGER NOT NULL,
    PRIMARY KEY (unit, dimension, start, upstream, value)
  ) STRICT, WITHOUT ROWID;
  -- The sequence number of the newest row of history that report_rows contain.
  INSERT INTO meta (key, value) VALUES ('reports_through', '0');

  -- Submissions by whether they were known to be final in time, in slices of five minutes that begin at "start".
  CREATE TABLE objective_slices (
    upstream TEXT NOT NULL,
    start INTEGER NOT NULL,
    good INTEGER NOT NULL,
    bad INTEGER NOT NULL,
    PRIMARY KEY (upstream, start)
  ) STRICT, WITHOUT ROWID;
  -- The row id of the newest submission that the slices contain.
  ALTER TABLE upstreams ADD COLUMN objective_through INTEGER NOT NULL DEFAULT 0;
`;
