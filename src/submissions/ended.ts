/** A position in the order in which submissions ended. */
export type EndPosition = { endedAt: number; id: number };

/** The names of a search in ENDED and IS_DELETABLE. */
export function searchParameters(after: EndPosition, before: EndPosition, countedThrough: number) {
  return {
    afterEndedAt: after.endedAt,
    afterId: after.id,
    beforeEndedAt: before.endedAt,
    beforeId: before.id,
    countedThrough,
  };
}

/** The submissions that ended between two positions, oldest first. */
export const ENDED = `
  FROM submissions s
  WHERE s.ended_at IS NOT NULL AND s.watched = 0
    AND (s.ended_at, s.id) > (@afterEndedAt, @afterId) AND (s.ended_at, s.id) < (@beforeEndedAt, @beforeId)
  ORDER BY s.ended_at, s.id`;

/** Of a delivery `d`. */
export const HAS_OPEN_DELIVERY = "d.state NOT IN ('delivered', 'discarded')";

/**
 * Whether a submission `s` may be deleted: its history ends at @countedThrough or before it, and it
 * has no open delivery. The newest submission of all stays, because SQLite would assign its row id
 * again.
 */
export const IS_DELETABLE = `
  s.id < (SELECT max(id) FROM submissions)
  AND NOT EXISTS (SELECT 1 FROM outbox o JOIN deliveries d ON d.event = o.seq WHERE o.submission = s.id AND ${HAS_OPEN_DELIVERY})
  AND NOT EXISTS (SELECT 1 FROM history h WHERE h.submission = s.id AND h.seq > @countedThrough)`;
