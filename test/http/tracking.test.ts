import { describe, expect, it } from 'vitest';
import {
  call,
  detailsOf,
  listOf,
  pathOf,
  post,
  problemOf,
  submissionOf,
  trackedOf,
} from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const track = async (body: object) => trackedOf(await post(app.url, body));

it('tracks one submission and shows it with the first entry of its history', async () => {
  const tracked = await track({ submission_id: 'one', metadata: { order: 7, tags: ['a', null] } });
  expect(tracked).toMatchObject({ accepted: 1, already_tracked: 0 });
  const details = detailsOf(await call(app.url, pathOf('one')));
  expect(details).toMatchObject({
    submission_id: 'one',
    upstream: 'default',
    status: 'tracking',
    metadata: { order: 7, tags: ['a', null] },
    finalized_at: null,
  });
  expect(details.history).toMatchObject([
    { status: 'tracking', previous_status: null, at: details.tracked_at },
  ]);
});

it('refuses 1,001 ids with the limit, and tracks none of them', async () => {
  const ids = Array.from({ length: 1_001 }, (_, index) => `too-many-${index}`);
  const response = await post(app.url, { submission_ids: ids });
  expect(response.status).toBe(400);
  expect(problemOf(response).errors).toEqual([
    { pointer: '/submission_ids', detail: expect.stringMatching(/at most 1000/) },
  ]);
  expect((await call(app.url, pathOf('too-many-0'))).status).toBe(404);
});

it('tracks an id once, however often it is sent, with the first parameters', async () => {
  const first = await track({ submission_id: 'again', metadata: { first: true } });
  const second = await track({
    submission_ids: ['again', 'again'],
    metadata: { first: false },
    unknown_grace_s: 1,
  });
  expect(second).toMatchObject({ accepted: 0, already_tracked: 1 });
  expect(second.submissions).toMatchObject([
    { tracked_at: first.submissions[0]?.tracked_at, metadata: { first: true }, status: 'tracking' },
  ]);
});

it('tracks the same batch from concurrent clients once', async () => {
  const submission_ids = ['raced-1', 'raced-2', 'raced-3'];
  const responses = await Promise.all(Array.from({ length: 20 }, () => track({ submission_ids })));
  expect(responses.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(3);
});

it('keeps the given deadline, whatever its offset', async () => {
  const at = new Date(Date.now() + 3_600_000);
  const local = new Date(at.getTime() + 2 * 3_600_000).toISOString().replace('Z', '+02:00');
  const tracked = await track({ submission_id: 'dated', deadline: local, upstream: 'other' });
  const deadlineAt = Date.parse(tracked.submissions[0]?.deadline_at ?? '');
  // The outage of the upstream moves the deadline.
  expect(deadlineAt).toBeGreaterThanOrEqual(at.getTime());
  expect(deadlineAt).toBeLessThan(at.getTime() + 3_600_000);
});

it.each([
  ['10m', 600_000],
  ['PT10M', 600_000],
  ['P1DT1H0.5S', 90_000_500],
  ['90s', 90_000],
])('takes the deadline %s as a duration from now, as PATCH does', async (deadline, durationMs) => {
  const id = `lasting-${deadline}`;
  const before = Date.now();
  const { submissions } = await track({ submission_id: id, deadline });
  expect(Date.parse(submissions[0]?.deadline_at ?? '')).toBeGreaterThanOrEqual(before + durationMs);
  const changed = await call(app.url, pathOf(id), { method: 'PATCH', body: { deadline } });
  expect(Date.parse(submissionOf(changed).deadline_at)).toBeGreaterThan(before + durationMs);
});

it.each(['10', '10 m', 'PT', 'P1M', '400d', '2027-01-01'])(
  'refuses the deadline %s',
  async (deadline) => {
    const { errors } = problemOf(await post(app.url, { submission_id: 'odd', deadline }));
    expect(errors).toMatchObject([{ pointer: '/deadline' }]);
  },
);

describe('a data_hash', () => {
  const hash = `0x${'Ab'.repeat(32)}`;

  it('is stored in lower case, for all ids or each one', async () => {
    const submissions = [{ submission_id: 'hash-1' }, { submission_id: 'hash-2', data_hash: hash }];
    const tracked = await track({ submissions, data_hash: hash.replace('A', '0') });
    expect(tracked.submissions.map(({ data_hash }) => data_hash)).toEqual([
      hash.replace('A', '0').toLowerCase(),
      hash.toLowerCase(),
    ]);
  });

  it('cannot be another one for an id that is tracked', async () => {
    await track({ submission_id: 'hash-3', data_hash: hash });
    expect(await track({ submission_id: 'hash-3', data_hash: hash.toLowerCase() })).toMatchObject({
      already_tracked: 1,
    });
    const submissions = [{ submission_id: 'hash-4' }, { submission_id: 'hash-3' }];
    for (const retrack of [false, true]) {
      const refused = await post(app.url, {
        submissions,
        retrack,
        data_hash: `0x${'c'.repeat(64)}`,
      });
      const reason = `is already tracked with the data_hash ${hash.toLowerCase()}`;
      expect(problemOf(refused)).toMatchObject({
        ...{ status: 409, detail: `hash-3 ${reason}; nothing was accepted` },
        errors: [{ pointer: '/data_hash', detail: reason }],
      });
    }
    expect((await call(app.url, pathOf('hash-4'))).status).toBe(404);
  });

  it('is taken once for an open id, whose other options stay', async () => {
    await track({ submission_id: 'hash-6' });
    const submissions = [
      { submission_id: 'hash-6', data_hash: hash, metadata: { order: 1 } },
      { submission_id: 'hash-6', data_hash: `0x${'c'.repeat(64)}` },
    ];
    const { already_tracked, submissions: tracked } = await track({
      submissions: submissions.slice(0, 1),
    });
    expect(already_tracked).toBe(1);
    expect(tracked[0]).toMatchObject({ data_hash: hash.toLowerCase(), metadata: null });
    expect((await post(app.url, { submissions: submissions.slice(1) })).status).toBe(409);
    const { history } = detailsOf(await call(app.url, pathOf('hash-6')));
    expect(history.at(-1)?.changes).toEqual({
      data_hash: { from: null, to: hash.toLowerCase() },
    });
    await track({ submission_id: 'hash-7' });
    await call(app.url, pathOf('hash-7'), { method: 'DELETE' });
    const ended = await track({ submission_id: 'hash-7', data_hash: hash });
    expect(ended).toMatchObject({ already_final: 1, submissions: [{ data_hash: null }] });
  });

  it('is added to a submission that is tracked again', async () => {
    await track({ submission_id: 'hash-5' });
    await call(app.url, pathOf('hash-5'), { method: 'DELETE' });
    const body = { submission_id: 'hash-5', retrack: true, data_hash: hash };
    expect((await track(body)).submissions[0]?.data_hash).toBe(hash.toLowerCase());
  });
});

describe('retrack', () => {
  const at = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();
  const cancel = (id: string) => call(app.url, pathOf(id), { method: 'DELETE' });
  const end = async (id: string, options: object = {}) => {
    await track({ submission_id: id, ...options });
    return submissionOf(await cancel(id));
  };

  it('tracks an ended submission again, with new time limits and the history continued', async () => {
    const ended = await end('back', { metadata: { order: 1 }, deadline: at(2), stuck_after_s: 5 });
    const deadline = at(1);
    const tracked = await track({
      submission_id: 'back',
      retrack: true,
      deadline,
      stuck_after_s: 7,
    });
    expect(tracked).toMatchObject({
      accepted: 0,
      already_tracked: 0,
      already_final: 0,
      retracked: 1,
    });
    const { history, ...shown } = detailsOf(await call(app.url, pathOf('back')));
    expect(shown).toMatchObject({ status: 'tracking', metadata: { order: 1 }, finalized_at: null });
    expect(Date.parse(shown.tracked_at)).toBeGreaterThanOrEqual(Date.parse(ended.tracked_at));
    expect(history.map(({ status, previous_status }) => [status, previous_status])).toEqual([
      ['tracking', null],
      ['cancelled', 'tracking'],
      ['tracking', 'cancelled'],
    ]);
    expect(history.map(({ changes }) => changes !== undefined)).toEqual([false, false, true]);
    expect(history[2]?.changes).toMatchObject({
      deadline_at: { from: expect.any(String), to: deadline },
      stuck_after_s: { from: 5, to: 7 },
    });
  });

  it('replaces metadata and callback_url only if the request names them', async () => {
    await end('named', { metadata: { order: 1 } });
    await track({ submission_id: 'named', retrack: true, metadata: { order: 2 } });
    const { history, metadata } = detailsOf(await call(app.url, pathOf('named')));
    expect(metadata).toEqual({ order: 2 });
    expect(history.at(-1)?.changes?.metadata).toEqual({ from: { order: 1 }, to: { order: 2 } });
  });

  it('counts ended submissions apart from open ones, with and without the flag, also in concurrent requests', async () => {
    await end('apart');
    const body = { submission_ids: ['apart', 'apart-open', 'apart'] };
    expect(await track(body)).toMatchObject({
      accepted: 1,
      already_tracked: 0,
      already_final: 1,
      retracked: 0,
    });
    const both = await Promise.all([
      track({ ...body, retrack: true }),
      track({ ...body, retrack: true }),
      track(body),
    ]);
    expect(both.reduce((sum, { retracked }) => sum + retracked, 0)).toBe(1);
    expect(await track({ ...body, retrack: true })).toMatchObject({
      already_tracked: 2,
      retracked: 0,
    });
  });

  it('refuses a deadline in the past, another upstream and a flag that is no boolean, and changes nothing', async () => {
    const ended = await end('kept');
    const body = { submission_ids: ['kept', 'kept-new'], retrack: true };
    const late = await post(app.url, { ...body, deadline: '2020-01-01T00:00:00Z' });
    expect(problemOf(late).errors).toMatchObject([{ pointer: '/deadline' }]);
    expect((await post(app.url, { ...body, upstream: 'other' })).status).toBe(409);
    expect((await post(app.url, { ...body, retrack: 'yes' })).status).toBe(400);
    // A poll that was in flight when it was cancelled may be counted meanwhile.
    const { polls: _polls, last_polled_at: _at, ...unchanged } = ended;
    expect(detailsOf(await call(app.url, pathOf('kept')))).toMatchObject(unchanged);
    expect((await call(app.url, pathOf('kept-new'))).status).toBe(404);
  });
});

it('cancels a submission once and for good', async () => {
  await track({ submission_id: 'stopped' });
  const cancelled = submissionOf(await call(app.url, pathOf('stopped'), { method: 'DELETE' }));
  expect(cancelled).toMatchObject({
    submission_id: 'stopped',
    status: 'cancelled',
    finalized_at: null,
  });
  // A poll in flight may still be counted.
  const { polls: _polls, last_polled_at: _at, ...lasting } = cancelled;
  expect(submissionOf(await call(app.url, pathOf('stopped'), { method: 'DELETE' }))).toMatchObject(
    lasting,
  );
  expect(await track({ submission_id: 'stopped' })).toMatchObject({
    accepted: 0,
    submissions: [lasting],
  });
  const { history } = detailsOf(await call(app.url, pathOf('stopped')));
  expect(history.map(({ status }) => status)).toEqual(['tracking', 'cancelled']);
});

it('lists newest first, page by page, each submission once, also while new ones arrive', async () => {
  const ids = Array.from({ length: 25 }, (_, index) => `page-${index}`);
  await track({ submission_ids: ids });
  for (const id of ids) await call(app.url, pathOf(id), { method: 'DELETE' });
  const seen: string[] = [];
  let cursor: string | null = null;
  let pages = 0;
  do {
    const after: string = cursor === null ? '' : `&cursor=${cursor}`;
    const page = listOf(await call(app.url, `/v1/submissions?status=cancelled&limit=10${after}`));
    expect(page.submissions.length).toBeLessThanOrEqual(10);
    seen.push(...page.submissions.map(({ submission_id }) => submission_id));
    cursor = page.next_cursor;
    pages += 1;
    await track({ submission_id: `newcomer-${pages}` });
  } while (cursor !== null);
  expect(seen.filter((id) => id.startsWith('page-'))).toEqual(ids.toReversed());
  expect(new Set(seen).size).toBe(seen.length);
  expect(listOf(await call(app.url, '/v1/submissions?limit=1')).submissions[0]?.submission_id).toBe(
    `newcomer-${pages}`,
  );
});
