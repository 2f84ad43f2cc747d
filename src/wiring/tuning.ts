/** Values without a setting. Tests replace some of them, so that they need not wait. */
export const TUNING = {
  /**
   * Time to receive a complete request, and for a client that reads nothing of its response: much
   * more than 1,000 ids take on a slow connection.
   */
  requestTimeoutMs: 30_000,
  /**
   * Concurrent readers of the live feed and requests that wait for a submission: each takes about
   * 20 kB of memory.
   */
  maxHeldOpen: 10_000,
  /** The first event for a channel waits for others to be sent in the same message. */
  gatherMs: 5_000,
  /** Time between two evaluations of the alert rules, which take some milliseconds. */
  alertCheckMs: 5_000,
  /** How long Redis is down, or all workers are gone, before an alert: restarts take less. */
  redisDownMs: 10_000,
  noWorkersMs: 30_000,
  /**
   * Single failures of an upstream are normal, five in a row are not. It is probed soon after a
   * short outage, and rarely in a long one.
   */
  breaker: { failures: 5, probeMs: 1_000, maxProbeMs: 30_000 },
};

export type Tuning = typeof TUNING;
