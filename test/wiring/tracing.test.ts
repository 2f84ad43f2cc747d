import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/lib/system-clock.ts';
import { type TracingProblem, tracingSettings } from '../../src/operations/config/tracing.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { createTraces } from '../../src/wiring/tracing.ts';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { openTraceReceiver } from '../support/servers/trace-receiver.ts';
import { tempFolder } from '../support/temp-folder.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = `00-${TRACE_ID}-b7ad6b7169203331-01`;

const fail = ({ variable, reason }: TracingProblem) => expect.fail(`${variable} ${reason}`);

/**
 * An app over a sandbox that sends callbacks to a receiver, with its spans exported if `endpoint`
 * is given.
 */
async function openTraced(endpoint?: string, env: Record<string, string> = {}) {
  const delivered: IncomingHttpHeaders[] = [];
  const hook = createServer((request, response) => {
    delivered.push(request.headers);
    response.writeHead(204).end();
  }).listen(0, '127.0.0.1');
  const sandbox = await startSandbox({ options: { speed: 200 } });
  const database = join(tempFolder(), 'ledger.db');
  const tracing = tracingSettings(
    { ...env, ...(endpoint && { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint }) },
    fail,
  );
  const webhooks = { allow: ['127.0.0.0/8'], allow_http: true };
  const upstream = { submit: { enabled: true, max_bytes: 1_000 } };
  const app = await openApp({ database, upstreamUrl: sandbox.url, upstream, webhooks, tracing });
  onTestFinished(async () => {
    await app.close();
    await sandbox.close();
    hook.close();
  });
  const callback_url = `http://127.0.0.1:${(hook.address() as AddressInfo).port}/`;
  return {
    url: app.url,
    close: () => app.close(),
    delivered,
    /** Tracks a submission, and resolves with its id after its first callback. */
    async finalized(headers: Record<string, string>, fields: object = {}): Promise<string> {
      const submission_id = sandbox.model.submit('some data', Date.now());
      const body = { submission_id, callback_url, ...fields };
      const response = await call(app.url, '/v1/submissions', { method: 'POST', headers, body });
      expect(response.status, response.text).toBe(202);
      await vi.waitFor(() => expect(delivered).not.toEqual([]), { timeout: 15_000, interval: 20 });
      return submission_id;
    },
    stored: () =>
      rawConnection(database).prepare('SELECT traceparent FROM submission_traces').pluck().all(),
  };
}

it('links the spans of polls, commits and deliveries with the trace of the caller', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url, {
    OTEL_SERVICE_NAME: 'da-monitor',
    OTEL_EXPORTER_OTLP_HEADERS: 'x-key=a%20b',
  });
  const id = await app.finalized({ traceparent: CALLER });
  const [stored] = app.stored();
  await app.close();

  const [request] = receiver.requests;
  expect(request).toMatchObject({ path: '/v1/traces', resource: { 'service.name': 'da-monitor' } });
  expect(request?.headers).toMatchObject({ 'content-type': 'application/json', 'x-key': 'a b' });
  const [intake, ...others] = receiver.named('POST /v1/submissions');
  expect(others).toEqual([]);
  expect(intake).toMatchObject({
    traceId: TRACE_ID,
    parentSpanId: 'b7ad6b7169203331',
    kind: 2,
    status: {},
  });
  expect(intake?.attributes).toMatchObject({
    'dawatch.submission_id': id,
    'dawatch.submissions': '1',
  });
  expect(stored).toBe(`00-${TRACE_ID}-${intake?.spanId}-01`);

  const links = [{ traceId: TRACE_ID, spanId: intake?.spanId }];
  const polls = receiver.named('poll');
  const commits = receiver.named('commit');
  const [delivery] = receiver.named('deliver');
  expect(polls.length).toBeGreaterThan(0);
  expect(commits).toHaveLength(polls.length);
  for (const one of [...polls, ...commits, delivery]) {
    expect(one).toMatchObject({ links });
    expect(one?.traceId).not.toBe(TRACE_ID);
    expect(Number(one?.endTimeUnixNano)).toBeGreaterThanOrEqual(Number(one?.startTimeUnixNano));
  }
  expect(commits.map(({ parentSpanId }) => parentSpanId)).toEqual(
    polls.map(({ spanId }) => spanId),
  );
  expect(polls.at(-1)?.attributes).toMatchObject({
    'dawatch.observation': 'finalized',
    'dawatch.upstream': 'default',
  });
  expect(commits.at(-1)?.attributes).toMatchObject({ 'dawatch.status': 'finalized' });
  expect(delivery?.attributes).toMatchObject({
    'dawatch.event_type': 'submission.finalized',
    'http.response.status_code': '204',
  });
  expect(app.delivered[0]?.traceparent).toBe(`00-${delivery?.traceId}-${delivery?.spanId}-01`);
});

it('links the spans of submitted data with the trace of the caller', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  const submitted = await call(app.url, '/v1/submit_data', {
    method: 'POST',
    headers: { traceparent: CALLER },
    body: { data: 'some data' },
  });
  const { submission_id } = JSON.parse(submitted.text);
  const status = async () => JSON.parse((await call(app.url, pathOf(submission_id))).text).status;
  await vi.waitFor(async () => expect(await status()).toBe('finalized'), {
    timeout: 15_000,
    interval: 20,
  });
  expect(
    (await call(app.url, '/v1/submit_data?upstream=moon', { method: 'POST', body: {} })).status,
  ).toBe(400);
  const [stored] = app.stored();
  await app.close();
  const [intake, refused] = receiver.named('POST /v1/submit_data');
  expect(intake).toMatchObject({ traceId: TRACE_ID, parentSpanId: 'b7ad6b7169203331', kind: 2 });
  expect(intake?.status).toEqual({});
  expect(intake?.attributes).toMatchObject({
    'dawatch.submission_id': submission_id,
    'http.response.status_code': '200',
  });
  expect(refused?.status).toMatchObject({ message: 'HTTP 400' });
  expect(stored).toBe(`00-${TRACE_ID}-${intake?.spanId}-01`);
  for (const poll of receiver.named('poll'))
    expect(poll.links).toEqual([{ traceId: TRACE_ID, spanId: intake?.spanId }]);
});

it('begins a trace for a caller without one, also if its traceparent is invalid', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  await post(app.url, { submission_ids: ['a', 'b'] });
  const invalid = { traceparent: '00-0-0-01' };
  await call(app.url, '/v1/submissions', {
    method: 'POST',
    headers: invalid,
    body: { submission_id: 'c' },
  });
  expect(new Set(app.stored()).size).toBe(2);
  expect(app.stored()).toHaveLength(3);
  await app.close();
  const intakes = receiver.named('POST /v1/submissions');
  expect(
    intakes.map(({ parentSpanId, attributes }) => [
      parentSpanId,
      attributes['dawatch.submissions'],
    ]),
  ).toEqual([
    [undefined, '2'],
    [undefined, '1'],
  ]);
});

it('takes the field of the body before the header, and refuses an invalid one', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  await app.finalized(
    { traceparent: `00-${'1'.repeat(32)}-${'1'.repeat(16)}-01` },
    { traceparent: CALLER },
  );
  const refused = await post(app.url, { submission_id: 'b', traceparent: 'no' });
  expect([refused.status, refused.text]).toEqual([
    400,
    expect.stringContaining('body /traceparent: must be a traceparent'),
  ]);
  await app.close();
  expect(receiver.named('POST /v1/submissions')).toMatchObject([{ traceId: TRACE_ID }]);
});

it('replaces the trace of a submission that is tracked again', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  await post(app.url, { submission_id: 'a' });
  const [first] = app.stored();
  await call(app.url, pathOf('a'), { method: 'DELETE' });
  await post(app.url, { submission_id: 'a', retrack: true, traceparent: CALLER });
  expect(app.stored()).toEqual([expect.stringContaining(TRACE_ID)]);
  expect(first).not.toContain(TRACE_ID);
  await call(app.url, pathOf('a'), { method: 'DELETE' });
  await post(app.url, {
    submission_id: 'a',
    retrack: true,
    traceparent: CALLER.replace(/01$/, '00'),
  });
  expect(app.stored()).toEqual([]);
});

it('traces the intake of a job, also if it fails', async () => {
  const receiver = await openTraceReceiver();
  const settings = tracingSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }, fail);
  const traces = createTraces({ settings, clock: systemClock, version: '1' } as never);
  const bodies: (string | undefined)[] = [];
  const track = traces.connect({} as never).intake(async (body) => {
    bodies.push(body.traceparent);
    if (body.submission_id === 'b') throw new Error('the disk is full');
    return { kind: 'tracked', submissions: [] };
  });
  await track({ submission_id: 'a', traceparent: CALLER });
  await expect(track({ submission_id: 'b' })).rejects.toThrow('the disk is full');
  await traces.tracer.close(1_000);
  const [first, second] = receiver.named('dawatch-submissions process');
  expect(first).toMatchObject({
    kind: 5,
    traceId: TRACE_ID,
    parentSpanId: 'b7ad6b7169203331',
    status: {},
  });
  expect(second).toMatchObject({ status: { code: 2, message: 'the ledger could not be written' } });
  expect(bodies[0]).toBe(`00-${TRACE_ID}-${first?.spanId}-01`);
});

it('records the reason of a refused request', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  await post(app.url, { submission_id: 'a', upstream: 'nowhere' });
  await app.close();
  expect(receiver.spans).toMatchObject([{ status: { code: 2, message: 'invalid' } }]);
});

it.each([
  ['its caller does not sample it', CALLER.replace(/01$/, '00'), {}],
  ['the sampler is off', undefined, { OTEL_TRACES_SAMPLER: 'parentbased_always_off' }],
])('stores, sends and exports nothing of a submission if %s', async (_, traceparent, env) => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url, env as Record<string, string>);
  await app.finalized(traceparent === undefined ? {} : { traceparent });
  expect(app.stored()).toEqual([]);
  await app.close();
  expect([receiver.attempts, app.delivered[0]?.traceparent]).toEqual([0, undefined]);
});

it('ignores traceparent while tracing is off', async () => {
  const app = await openTraced();
  const id = await app.finalized({ traceparent: CALLER }, { traceparent: CALLER });
  expect(app.stored()).toEqual([]);
  expect(app.delivered[0]).not.toHaveProperty('traceparent');
  expect(JSON.parse((await call(app.url, pathOf(id))).text)).not.toHaveProperty('traceparent');
});
