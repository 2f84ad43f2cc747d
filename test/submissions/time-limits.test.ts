import { expect, it } from 'vitest';
import { limitsFrom } from '../../src/submissions/option-changes.ts';
import { type TrackBody, toTrackRequests } from '../../src/submissions/track-request.ts';

const NOW = 1_760_000_000_000;
const QUEUED_MS = 4_000;
const DEFAULTS = { deadlineMs: 1_000, unknownGraceMs: 2_000, stuckAfterMs: 3_000 };

/**
 * The request of a body that is valid at NOW, and its limits if it is committed four seconds later.
 */
function queued(body: TrackBody) {
  const context = {
    now: NOW,
    defaults: DEFAULTS,
    hasUpstream: () => true,
    refusalOf: () => undefined,
  };
  const valid = toTrackRequests(body, context);
  const [request] = valid.kind === 'requests' ? valid.requests : [];
  if (!request) throw new Error('the body is invalid');
  const { deadlineAt, graceEndsAt, stuckAt } = limitsFrom(request, NOW + QUEUED_MS);
  return { trackedAt: request.trackedAt, limits: [deadlineAt, graceEndsAt, stuckAt] };
}

const after = (from: number, ...seconds: number[]) => seconds.map((count) => from + count * 1_000);
const iso = (at: number) => new Date(at).toISOString();

it('time limits that are durations count from the commit, however long the request waited for it', () => {
  const committedAt = NOW + QUEUED_MS;
  expect(queued({ submission_id: 'a' }).limits).toEqual(after(committedAt, 1, 2, 3));
  expect(queued({ submission_id: 'a', unknown_grace_s: 7, stuck_after_s: 8 }).limits).toEqual(
    after(committedAt, 1, 7, 8),
  );
});

it('a deadline stays as it is', () => {
  expect(queued({ submission_id: 'a', deadline: iso(NOW + 60_000) }).limits[0]).toBe(NOW + 60_000);
});

it('the limits of an import count from its tracked_at, except a default deadline', () => {
  const { trackedAt, limits } = queued({ submission_id: 'a', tracked_at: iso(NOW - 9_000) });
  expect([trackedAt, ...limits]).toEqual([
    NOW - 9_000,
    NOW + QUEUED_MS + 1_000,
    ...after(NOW - 9_000, 2, 3),
  ]);
});
