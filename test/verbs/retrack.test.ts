import { expect, it } from 'vitest';
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

it('tracks ended submissions again where an entry says so', async () => {
  const submissions = ['ended-1', 'ended-2'].map((submission_id) => ({ submission_id }));
  for (const { submission_id } of submissions) await end(submission_id);
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

it('adds a data_hash', async () => {
  const data_hash = `0x${'ab'.repeat(32)}`;
  await end('hash-5');
  const body = { submission_id: 'hash-5', retrack: true, data_hash };
  expect((await track(body)).submissions[0]?.data_hash).toBe(data_hash);
});
