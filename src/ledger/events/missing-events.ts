/** Whoever resumes from before the event `@through` is told that something may be missing. */
export const RECORD_MISSING_EVENTS = `
  -- It only grows.
  INSERT INTO meta (key, value) VALUES ('events_missing_through', CAST(@through AS INTEGER))
  ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))`;

/** Up to that event some may be missing; no row: none is. */
export const MISSING_THROUGH = "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'events_missing_through'";
