import { describe, expect, it } from 'vitest';
import {
  call,
  detailsOf,
  type HttpResponse,
  pathOf,
  post,
  submissionOf,
} from '../support/app/http-calls.ts';
import { appForTest, useAppWithSandbox } from '../support/app/running-app.ts';
import { finalEnvelope } from '../support/ledger/domain.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { eventually } from '../support/until.ts';
import { byAge } from '../support/virtual-time/pacing.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const clock = new HeldClock();
const app = useAppWithSandbox({ clock });
/** An id that the sandbox does not know. */
const ABSENT = '00000000-0000-4000-8000-000000000000';
let used = 0;

/** Tracks an id whose status does not change. */
async function open(): Promise<string> {
  used += 1;
  const id = ABSENT.replace(/^0{8}/, String(used).padStart(8, '0'));
  expect((await post(app.url, { submission_id: id })).status).toBe(202);
  return id;
}

const wait = (id: string, timeoutS: number, signal?: AbortSignal) =>
  call(app.url, `${pathOf(id)}/wait?timeout_s=${timeoutS}`, { ...(signal && { signal }) });
const untilHeld = (count: number, timeoutS: number) =>
  eventually(() => expect(clock.held(timeoutS * 1_000)).toBe(count));

it('responds at once for a final submission', async () => {
  const id = await open();
  await call(app.url, pathOf(id), { method: 'DELETE' });
  expect(submissionOf(await wait(id, 201))).toMatchObject({
    submission_id: id,
    status: 'cancelled',
  });
  expect(clock.held(201_000)).toBe(0);
});

it('responds as soon as a submission is final', async () => {
  const id = app.submit();
  await post(app.url, { submission_id: id });
  const finalized = submissionOf(await wait(id, 202));
  expect(finalized.status).toBe('finalized');
  expect(finalized.data).toMatchObject({ block_number: expect.any(Number) });
  const { history, ...details } = detailsOf(await call(app.url, pathOf(id)));
  expect(details).toEqual(finalized);
  expect(history.at(-1)).toMatchObject({ status: 'finalized', at: finalized.finalized_at });
});

it('responds with the current submission after the timeout', async () => {
  const id = await open();
  let response: HttpResponse | undefined;
  const waiting = wait(id, 203).then((given) => {
    response = given;
  });
  await untilHeld(1, 203);
  expect(response).toBeUndefined();
  clock.fire(203_000);
  await waiting;
  expect(response && submissionOf(response)).toMatchObject({
    submission_id: id,
    status: 'tracking',
  });
});

it('responds at the deadline of an id that the upstream does not know', async () => {
  const submission_id = ABSENT.replace('8', '9');
  const deadline = new Date(Date.now() + 1_000).toISOString();
  expect((await post(app.url, { submission_id, deadline })).status).toBe(202);
  expect(submissionOf(await wait(submission_id, 90))).toMatchObject({
    status: 'expired',
    deadline_at: deadline,
  });
});

it('drops a disconnected client and still responds to the other', async () => {
  const id = await open();
  const gone = new AbortController();
  const left = wait(id, 205, gone.signal).catch(() => 'hung up');
  const stayed = wait(id, 206);
  await untilHeld(1, 205);
  await untilHeld(1, 206);
  gone.abort();
  expect(await left).toBe('hung up');
  await untilHeld(0, 205);
  expect(clock.held(206_000)).toBe(1);
  await call(app.url, pathOf(id), { method: 'DELETE' });
  expect(submissionOf(await stayed).status).toBe('cancelled');
});

describe('a submission that is final already, and whose first scheduled poll is in an hour,', () => {
  const openLate = async () => {
    const upstream = await serve((_request, response) =>
      response.end(JSON.stringify(finalEnvelope({}, { id: undefined }))),
    );
    const server = await appForTest({
      upstreamUrl: upstream.url,
      policy: () => (deps) => ({
        ...byAge(deps),
        register: (_item, _known, now) => now + 3_600_000,
      }),
    });
    return { ...upstream, server };
  };

  it('is polled at once by a wait, once for all that wait, and by no other request', async () => {
    const { server, requests } = await openLate();
    await post(server.url, { submission_ids: ['a', 'b'] });
    await call(server.url, pathOf('a'));
    await call(server.url, `${pathOf('a')}/wait?timeout_s=0`);
    expect(requests).toEqual([]);
    const waits = Array.from({ length: 100 }, () =>
      call(server.url, `${pathOf('a')}/wait?timeout_s=240`),
    );
    for (const response of await Promise.all(waits))
      expect(submissionOf(response).status).toBe('finalized');
    expect(requests).toHaveLength(1);
  });

  it('is polled at once when it is tracked again', async () => {
    const { server } = await openLate();
    await post(server.url, { submission_id: 'again' });
    await call(server.url, pathOf('again'), { method: 'DELETE' });
    await post(server.url, { submission_id: 'again', retrack: true });
    await expect
      .poll(async () => detailsOf(await call(server.url, pathOf('again'))).status)
      .toBe('finalized');
  });
});

it('responds to waiting clients when the server closes', async () => {
  const closing = await appForTest({ clock });
  await post(closing.url, { submission_id: 'open' });
  const response = call(closing.url, `${pathOf('open')}/wait?timeout_s=208`);
  await untilHeld(1, 208);
  await closing.close();
  expect(submissionOf(await response)).toMatchObject({ submission_id: 'open', status: 'tracking' });
  expect(clock.held(208_000)).toBe(0);
});
