/** Schema 14: the W3C traceparent of the submissions whose intake was traced. Most ledgers have none. */
export const TRACES = `
  CREATE TABLE submission_traces (
    submission INTEGER PRIMARY KEY REFERENCES submissions (id) ON DELETE CASCADE,
    traceparent TEXT NOT NULL
  ) STRICT;
  `;
