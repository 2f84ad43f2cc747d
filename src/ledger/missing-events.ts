/**
 * Records that events up to the sequence number @through may be missing. The recorded number never
 * decreases.
 */
export const RECORD_MISSING_EVENTS = `
  INSERT INTO meta (key, value) VALUES ('events_missing_through', CAST(@through AS INTEGER))
  ON CONFLICT DO UPDATE SET value = max(CAST(value AS INTEGER), CAST(excluded.value AS INTEGER))`;
