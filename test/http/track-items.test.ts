import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import { call, detailsOf, pathOf, post, problemOf, trackedOf } from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const track = async (body: object) => trackedOf(await post(app.url, body));
const get = async (id: string) => detailsOf(await call(app.url, pathOf(id)));
const HOUR_MS = 3_600_000;
const ago = (ms: number) => new Date(Date.now() - ms).toISOString();

it('tracks submissions with their own options; the options beside them apply to the others', async () => {
  const tracked = await track({
    submissions: [
      { submission_id: 'own', upstream: 'other', metadata: { order: 1 } },
      { submission_id: 'shared' },
      { submission_id: 'empty', metadata: {} },
    ],
    metadata: { batch: 7 },
  });
  expect(tracked).toMatchObject({
    accepted: 3,
    already_tracked: 0,
    submissions: [
      { submission_id: 'own', upstream: 'other', metadata: { order: 1 } },
      { submission_id: 'shared', upstream: 'default', metadata: { batch: 7 } },
      { submission_id: 'empty', upstream: 'default', metadata: {} },
    ],
  });
});

it('tracks 1,000 submissions with metadata in one request', async () => {
  const submissions = Array.from({ length: 1_000 }, (_, order) => ({
    submission_id: `item-${order}`,
    metadata: { order, customer: 'x'.repeat(300) },
    deadline: '2100-01-01T00:00:00Z',
  }));
  const deadline = new Date(Date.now() + 100 * 24 * HOUR_MS).toISOString();
  const tracked = await track({ submissions: submissions.map((one) => ({ ...one, deadline })) });
  expect(tracked.accepted).toBe(1_000);
  expect(tracked.submissions.at(-1)).toMatchObject({
    submission_id: 'item-999',
    metadata: { order: 999 },
  });
});

it('merges a repeated id with the same options, whatever their order', async () => {
  const id = '6DF2C1CE-b11a-4828-b2a6-62bf5b7cb325';
  const submissions = [
    { submission_id: id, metadata: { a: 1, b: 2 }, stuck_after_s: 5 },
    { stuck_after_s: 5, metadata: { b: 2, a: 1 }, submission_id: id.toLowerCase() },
  ];
  expect(await track({ submissions })).toMatchObject({
    accepted: 1,
    submissions: [{ submission_id: id.toLowerCase() }],
  });
});

it('tracks ended submissions again where an entry says so', async () => {
  const submissions = ['ended-1', 'ended-2'].map((submission_id) => ({ submission_id }));
  await track({ submissions });
  for (const { submission_id } of submissions)
    await call(app.url, pathOf(submission_id), { method: 'DELETE' });
  const [first, second] = submissions;
  const tracked = await track({
    submissions: [
      { ...first, retrack: true },
      { ...second, metadata: { order: 1 } },
    ],
  });
  expect(tracked).toMatchObject({
    retracked: 1,
    already_final: 1,
    submissions: [{ status: 'tracking' }, { status: 'cancelled' }],
  });
});

describe('imports with tracked_at', () => {
  it('the time since when another system has tracked it; the history begins now', async () => {
    const tracked_at = ago(48 * HOUR_MS);
    const before = systemClock.now();
    const tracked = await track({ submissions: [{ submission_id: 'imported', tracked_at }] });
    expect(tracked.submissions[0]).toMatchObject({ tracked_at, status: 'tracking' });
    const { deadline_at, history } = await get('imported');
    expect(Date.parse(history[0]?.at ?? '')).toBeGreaterThanOrEqual(before);
    // The default deadline counts from now.
    expect(Date.parse(deadline_at)).toBeGreaterThanOrEqual(before + 24 * HOUR_MS);
  });

  it('in each form of the body', async () => {
    const tracked_at = ago(HOUR_MS);
    await track({ submission_id: 'imported-1', tracked_at });
    await track({ submission_ids: ['imported-2'], tracked_at });
    for (const id of ['imported-1', 'imported-2'])
      expect((await get(id)).tracked_at).toBe(tracked_at);
  });

  it('with a deadline that has passed since then', async () => {
    const deadline = ago(HOUR_MS);
    await track({
      submissions: [{ submission_id: 'overdue', tracked_at: ago(2 * HOUR_MS), deadline }],
    });
    expect((await get('overdue')).status).toBe('tracking');
  });

  it('a time that is ahead by less than a minute, because clocks differ, as now', async () => {
    const tracked = await track({ submission_id: 'ahead', tracked_at: ago(-30_000) });
    expect(Date.parse(tracked.submissions[0]?.tracked_at ?? '')).toBeLessThanOrEqual(Date.now());
  });
});

describe('refuses the whole request, and names the submission, for', () => {
  const good = { submission_id: 'untouched' };
  it.each<[string, object, string, string]>([
    ['an invalid id', { submission_id: 'not good' }, '/submission_id', 'printable ASCII'],
    ['an unknown option', { dedline: 'x' }, '', 'there is no field "dedline"'],
    ['an unknown upstream', { upstream: 'moon' }, '/upstream', 'no upstream is named "moon"'],
    ['a refused callback URL', { callback_url: 'http://127.0.0.1/' }, '/callback_url', ''],
    ['a deadline in the past', { deadline: ago(1_000) }, '/deadline', 'not in the future'],
    ['a far deadline', { deadline: ago(-9_600 * HOUR_MS) }, '/deadline', 'more than 366 days away'],
    [
      'a deadline before tracked_at',
      { tracked_at: ago(HOUR_MS), deadline: ago(2 * HOUR_MS) },
      '/deadline',
      'not after tracked_at',
    ],
    ['a future time', { tracked_at: ago(-HOUR_MS) }, '/tracked_at', 'is in the future'],
    [
      'tracked_at more than ten years ago',
      { tracked_at: '2001-01-01T00:00:00Z' },
      '/tracked_at',
      'more than 3660 days ago',
    ],
    [
      'an id with other options than before',
      { submission_id: 'untouched', metadata: { a: 1 } },
      '/submission_id',
      'the same id as submissions/0/submission_id, with other options',
    ],
    ['large metadata', { metadata: { a: 'x'.repeat(5_000) } }, '/metadata', 'at most 4096 bytes'],
  ])('%s', async (_, fields, field, reason) => {
    const submissions = [good, { submission_id: 'a', ...fields }];
    const problem = problemOf(await post(app.url, { submissions }));
    const pointer = `/submissions/1${field}`;
    expect(problem.status).toBe(400);
    expect(problem.errors?.[0]).toMatchObject({ pointer, detail: expect.stringContaining(reason) });
    expect((await call(app.url, pathOf('untouched'))).status).toBe(404);
  });

  it('an id that is tracked at another upstream', async () => {
    await track({ submission_id: 'elsewhere', upstream: 'other' });
    const problem = problemOf(
      await post(app.url, { submissions: [good, good, { submission_id: 'elsewhere' }] }),
    );
    expect(problem).toMatchObject({
      status: 409,
      errors: [{ pointer: '/submissions/2/submission_id' }],
    });
    const ofIds = problemOf(
      await post(app.url, { submission_ids: ['untouched', 'untouched', 'elsewhere'] }),
    );
    expect(ofIds).toMatchObject({ status: 409, errors: [{ pointer: '/submission_ids/2' }] });
    expect((await call(app.url, pathOf('untouched'))).status).toBe(404);
  });
});

it.each([
  ['two forms', { submission_id: 'a', submissions: [{ submission_id: 'b' }] }],
  ['two lists', { submission_ids: ['a'], submissions: [{ submission_id: 'b' }] }],
  ['no form', { metadata: {} }],
])('refuses a body with %s', async (_, body) => {
  const problem = problemOf(await post(app.url, body));
  expect([problem.status, problem.detail]).toEqual([
    400,
    'body: exactly one of submission_id, submission_ids and submissions is required',
  ]);
});

it('reports a refused option that is beside the list without a position', async () => {
  const problem = problemOf(
    await post(app.url, { submissions: [{ submission_id: 'a' }], upstream: 'moon' }),
  );
  expect(problem.errors).toEqual([{ pointer: '/upstream', detail: 'no upstream is named "moon"' }]);
});
