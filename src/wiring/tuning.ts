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
  /**
   * Attempts in flight to one receiver: enough for 100/s with responses of 80 ms. A failing
   * receiver gets one at a time.
   */
  deliveriesInFlight: 8,
  /** Ended deliveries are kept for investigations and replays this long: a month. */
  deliveriesKeptMs: 30 * 86_400_000,
  /** Waiting deliveries of an alert: those of a minute at 20 submissions/s. */
  backlog: 1_000,
  /** Entries of the audit are kept for a year, and until that year has been reviewed. */
  auditKeptMs: 400 * 86_400_000,
  /** Requests in flight may take this long when the server stops. */
  shutdownMs: 15_000,
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
