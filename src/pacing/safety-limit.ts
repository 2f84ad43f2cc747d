/**
 * Returns the longest time that a submission may be left unpolled: the time for which it has been open, but at least the
 * given interval and at most five times that interval. With 60 s:
 *
 *     age       0 to 60 s   2 min   5 min and more
 *     ceiling   60 s        2 min   5 min
 */
export function ceilingMs({ maxIntervalMs }: { maxIntervalMs: number }, ageMs: number): number {
  return Math.min(5 * maxIntervalMs, Math.max(maxIntervalMs, ageMs));
}
