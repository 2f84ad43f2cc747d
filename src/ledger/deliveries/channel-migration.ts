/** Migration 15: when each channel last succeeded and failed. */
export const CHANNEL_MIGRATION = `
  CREATE TABLE channel_results (
    channel TEXT PRIMARY KEY,
    last_success_at INTEGER,
    last_failure_at INTEGER
  ) STRICT, WITHOUT ROWID;
  INSERT INTO channel_results
    SELECT substr(d.destination, 9), max(iif(a.error IS NULL, a.at + a.duration_ms, NULL)),
           max(iif(a.error IS NULL, NULL, a.at + a.duration_ms))
    FROM deliveries d JOIN attempts a ON a.delivery = d.id
    WHERE d.destination BETWEEN 'channel:' AND 'channel:\x7f' GROUP BY 1;
  `;
