import { describe, expect, it } from 'vitest';
import { systemClock } from '../../src/lib/clock.ts';
import {
  call,
  detailsOf,
  pathOf,
  post,
  problemOf,
  submissionOf,
  trackedOf,
} from '../support/app/http-calls.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
const track = async (body: object) => trackedOf(await post(app.url, body));
const get = async (id: string) => detailsOf(await call(app.url, pathOf(id)));
const HOUR_MS = 3_600_000;
const ago = (ms: number) => new Date(Date.now() - ms).toISOString();

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
  const before = systemClock.now();
  const { submissions } = await track({ submission_id: id, deadline });
  expect(Date.parse(submissions[0]?.deadline_at ?? '')).toBeGreaterThanOrEqual(before + durationMs);
  const changed = await call(app.url, pathOf(id), { method: 'PATCH', body: { deadline } });
  expect(Date.parse(submissionOf(changed).deadline_at)).toBeGreaterThanOrEqual(before + durationMs);
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
    const trackedAt = Date.parse(tracked.submissions[0]?.tracked_at ?? '');
    expect(trackedAt).toBeLessThanOrEqual(systemClock.now());
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
