import { describe, expect, it } from 'vitest';
import {
  call,
  detailsOf,
  pathOf,
  post,
  problemOf,
  submissionOf,
  trackedOf,
} from '../support/app/http-calls.ts';
import { ADMIN_TOKEN, AS_ADMIN } from '../support/app/lookups.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp({
  adminToken: ADMIN_TOKEN,
  webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
});
const track = async (body: object) => trackedOf(await post(app.url, body));
const patch = (id: string, body: unknown) => call(app.url, pathOf(id), { method: 'PATCH', body });
const FAR = '2100-01-01T00:00:00.000Z';
const soon = () => new Date(Date.now() + 3_600_000).toISOString();

it('changes every option, shows it, and records it in the history', async () => {
  await track({
    submission_id: 'all',
    metadata: { order: 1 },
    unknown_grace_s: 200,
    stuck_after_s: 10.5,
  });
  const deadline = soon();
  const body = { deadline, unknown_grace_s: 300, stuck_after_s: 20, metadata: { order: 2 } };
  const updated = submissionOf(await patch('all', body));
  // An outage of the upstream extends the deadline further.
  const shown = { unknown_grace_s: 300, stuck_after_s: 20, metadata: { order: 2 } };
  expect(updated).toMatchObject(shown);
  const details = detailsOf(await call(app.url, pathOf('all')));
  expect(details).toMatchObject(shown);
  expect(details.history.map(({ status, previous_status }) => [status, previous_status])).toEqual([
    ['tracking', null],
    ['tracking', 'tracking'],
  ]);
  expect(details.history[1]?.changes).toEqual({
    deadline_at: { from: expect.any(String), to: deadline },
    unknown_grace_s: { from: 200, to: 300 },
    stuck_after_s: { from: 10.5, to: 20 },
    metadata: { from: { order: 1 }, to: { order: 2 } },
  });
  expect(submissionOf(await patch('all', { metadata: null })).metadata).toBeNull();
});

it('changes no time limit of a submission that has ended', async () => {
  await track({ submission_id: 'ended' });
  await call(app.url, pathOf('ended'), { method: 'DELETE' });
  const refused = problemOf(await patch('ended', { deadline: soon(), metadata: { order: 1 } }));
  expect(refused).toMatchObject({
    status: 409,
    detail: expect.stringContaining('only metadata, callback_url and data_hash can change'),
  });
  expect(refused.detail).toContain('"retrack": true');
  expect(detailsOf(await call(app.url, pathOf('ended')))).toMatchObject({
    status: 'cancelled',
    metadata: null,
  });
  expect(submissionOf(await patch('ended', { metadata: { order: 1 } })).metadata).toEqual({
    order: 1,
  });
});

it('shows the whole callback URL to admins, and scheme, host and port to others', async () => {
  const callback_url = 'http://127.0.0.1:9009/hook?token=hidden';
  const tracked = await track({ submission_id: 'secret', callback_url });
  expect(tracked.submissions[0]?.callback_url).toBe('http://127.0.0.1:9009');
  const other = 'http://127.0.0.1:8008/hook?token=hidden';
  const responses = [
    await patch('secret', { callback_url: other }),
    await call(app.url, pathOf('secret')),
    await call(app.url, '/v1/submissions?prefix=secret'),
    await call(app.url, `${pathOf('secret')}/wait?timeout_s=0`),
    await post(app.url, { submission_id: 'secret' }),
  ];
  for (const { status, text } of responses) {
    expect([200, 202]).toContain(status);
    expect(text).toContain('"callback_url":"http://127.0.0.1:8008"');
    expect(text).not.toContain('hidden');
  }
  const details = detailsOf(await call(app.url, pathOf('secret'), { headers: AS_ADMIN }));
  expect(details.callback_url).toBe(other);
  expect(details.history.at(-1)?.changes).toEqual({
    callback_url: { from: 'http://127.0.0.1:9009', to: 'http://127.0.0.1:8008' },
  });
  expect(submissionOf(await patch('secret', { callback_url: null })).callback_url).toBeNull();
});

it('changes the data_hash, also of an ended submission', async () => {
  const [first, second] = ['a', 'b'].map((digit) => `0x${digit.repeat(64)}`);
  await track({ submission_id: 'hashed', data_hash: first });
  await call(app.url, pathOf('hashed'), { method: 'DELETE' });
  expect(submissionOf(await patch('hashed', { data_hash: second })).data_hash).toBe(second);
  expect(submissionOf(await patch('hashed', { data_hash: null })).data_hash).toBeNull();
  const { history } = detailsOf(await call(app.url, pathOf('hashed')));
  expect(history.map(({ changes }) => changes?.data_hash)).toEqual([
    undefined,
    undefined,
    { from: first, to: second },
    { from: second, to: null },
  ]);
});

it('audits a change with the names of the options, and nothing if no option differs', async () => {
  await track({ submission_id: 'audited' });
  for (let times = 0; times < 2; times += 1)
    await patch('audited', { metadata: { order: 1 }, stuck_after_s: 7 });
  const { entries } = JSON.parse(
    (await call(app.url, '/v1/audit?limit=100', { headers: AS_ADMIN })).text,
  );
  const own = entries.filter(({ subject }: { subject: string }) => subject === 'audited');
  expect(own).toMatchObject([
    { action: 'submissions.update', result: 'done', detail: 'stuck_after_s, metadata' },
  ]);
});

describe('refuses, and changes nothing:', () => {
  it.each<[string, object, string | undefined]>([
    ['no field', {}, undefined],
    ['an option that cannot be removed', { metadata: {}, deadline: null }, '/deadline'],
    ['a past deadline', { metadata: {}, deadline: '2020-01-01T00:00:00Z' }, '/deadline'],
    ['a deadline more than 366 days away', { metadata: {}, deadline: FAR }, '/deadline'],
    ['metadata that are too large', { metadata: { a: 'x'.repeat(5_000) } }, '/metadata'],
    ['a refused callback', { metadata: {}, callback_url: 'http://10.0.0.1/' }, '/callback_url'],
  ])('%s', async (_, body, pointer) => {
    await track({ submission_id: 'kept', metadata: { kept: true } });
    const problem = problemOf(await patch('kept', body));
    expect(problem.status).toBe(400);
    if (pointer) expect(problem.errors?.map((error) => error.pointer)).toContain(pointer);
    const details = detailsOf(await call(app.url, pathOf('kept')));
    expect([details.metadata, details.history.length]).toEqual([{ kept: true }, 1]);
  });

  it('an id that was never tracked', async () => {
    expect(problemOf(await patch('never', { metadata: null })).detail).toBe(
      'never was never tracked here',
    );
  });
});
