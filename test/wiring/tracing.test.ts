import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/lib/system-clock.ts';
import {
  createTracer,
  type TracingProblem,
  tracingSettings,
} from '../../src/operations/tracing.ts';
import { startSandbox } from '../../src/sandbox/server.ts';
import { parseTraceparent } from '../../src/submissions/tracing.ts';
import { createTraces } from '../../src/wiring/tracing.ts';
import { call, pathOf, post } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { rawConnection } from '../support/ledger/ledger-file.ts';
import { openTraceReceiver } from '../support/servers/trace-receiver.ts';
import { deadAddress, serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const TRACE_ID = '0af7651916cd43dd8448eb211c80319c';
const CALLER = `00-${TRACE_ID}-b7ad6b7169203331-01`;
const UNSAMPLED = CALLER.replace(/01$/, '00');

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

it('records the intake, polls and deliveries in the trace of the caller', async () => {
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
  const intakes = receiver.named('POST /v1/submissions');
  const [intake] = intakes;
  expect(intakes).toMatchObject([
    {
      ...{ traceId: TRACE_ID, parentSpanId: 'b7ad6b7169203331', kind: 2, status: {} },
      attributes: { 'dawatch.submission_id': id, 'dawatch.submissions': '1' },
    },
  ]);
  expect(stored).toBe(`00-${TRACE_ID}-${intake?.spanId}-01`);

  const polls = receiver.named('poll');
  const [delivery] = receiver.named('deliver');
  expect(polls.length).toBeGreaterThan(0);
  for (const one of [...polls, delivery]) {
    expect(one).toMatchObject({ traceId: TRACE_ID, parentSpanId: intake?.spanId, kind: 3 });
    expect(Number(one?.endTimeUnixNano)).toBeGreaterThanOrEqual(Number(one?.startTimeUnixNano));
  }
  expect(polls.at(-1)?.attributes).toMatchObject({
    'dawatch.observation': 'finalized',
    'dawatch.status': 'finalized',
    'dawatch.upstream': 'default',
  });
  expect(delivery?.attributes).toMatchObject({
    'dawatch.event_type': 'submission.finalized',
    'http.response.status_code': '204',
  });
  expect(app.delivered[0]?.traceparent).toBe(`00-${TRACE_ID}-${delivery?.spanId}-01`);
});

it('records submitted data, and refused requests', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  const submit = (query: string, body: object) =>
    call(app.url, `/v1/submit_data${query}`, {
      method: 'POST',
      headers: { traceparent: CALLER },
      body,
    });
  const { submission_id } = JSON.parse((await submit('', { data: 'some data' })).text);
  expect((await submit('?upstream=moon', {})).status).toBe(400);
  await post(app.url, { submission_id: 'a', upstream: 'nowhere' });
  const [stored] = app.stored();
  await app.close();
  const [intake, refused] = receiver.named('POST /v1/submit_data');
  expect(intake).toMatchObject({
    ...{ traceId: TRACE_ID, status: {} },
    attributes: { 'dawatch.submission_id': submission_id, 'http.response.status_code': '200' },
  });
  expect(refused?.status).toMatchObject({ code: 2, message: 'HTTP 400' });
  expect(receiver.named('POST /v1/submissions')).toMatchObject([
    { status: { code: 2, message: 'invalid' } },
  ]);
  expect(stored).toBe(`00-${TRACE_ID}-${intake?.spanId}-01`);
});

it('begins a trace for a caller without a valid header; the field of the body is first', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  const track = (traceparent: string, body: object) =>
    call(app.url, '/v1/submissions', { method: 'POST', headers: { traceparent }, body });
  await track('00-0-0-01', { submission_ids: ['a', 'b'] });
  await track(CALLER.replace(TRACE_ID, '1'.repeat(32)), {
    submission_id: 'c',
    traceparent: CALLER,
  });
  expect((await track(CALLER, { submission_id: 'd', traceparent: 'no' })).text).toContain(
    'body /traceparent: must be a traceparent',
  );
  expect(app.stored()).toHaveLength(3);
  await app.close();
  const [first, second] = receiver.named('POST /v1/submissions');
  expect(first).not.toHaveProperty('parentSpanId');
  expect(second).toMatchObject({ traceId: TRACE_ID });
});

it('replaces the trace of a submission that is tracked again', async () => {
  const app = await openTraced((await openTraceReceiver()).url);
  await post(app.url, { submission_id: 'a' });
  for (const [traceparent, stored] of [
    [CALLER, [expect.stringContaining(TRACE_ID)]],
    [UNSAMPLED, []],
  ]) {
    await call(app.url, pathOf('a'), { method: 'DELETE' });
    await post(app.url, { submission_id: 'a', retrack: true, traceparent });
    expect(app.stored()).toEqual(stored);
  }
});

it('records the intake of a job, also if it fails', async () => {
  const receiver = await openTraceReceiver();
  const settings = tracingSettings({ OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url }, fail);
  const traces = createTraces({ settings, clock: systemClock, version: '1', ledger: {} } as never);
  const bodies: (string | undefined)[] = [];
  const track = traces.intake(async (body) => {
    bodies.push(body.traceparent);
    if (body.submission_id === 'b') throw new Error('the disk is full');
    return { kind: 'tracked', submissions: [] } as never;
  });
  await track({ submission_id: 'a', traceparent: CALLER });
  await expect(track({ submission_id: 'b' })).rejects.toThrow('the disk is full');
  await traces.tracer.close(1_000);
  const [first, second] = receiver.named('dawatch-submissions process');
  expect(first).toMatchObject({ kind: 5, traceId: TRACE_ID, status: {} });
  expect(second).toMatchObject({ status: { code: 2, message: 'the ledger could not be written' } });
  expect(bodies[0]).toBe(`00-${TRACE_ID}-${first?.spanId}-01`);
});

it('stores, sends and exports nothing of a submission that its caller does not sample', async () => {
  const receiver = await openTraceReceiver();
  const app = await openTraced(receiver.url);
  await app.finalized({ traceparent: UNSAMPLED });
  expect(app.stored()).toEqual([]);
  await app.close();
  expect([receiver.requests, app.delivered[0]?.traceparent]).toEqual([[], undefined]);
});

it('ignores traceparent while tracing is off', async () => {
  const app = await openTraced();
  const id = await app.finalized({ traceparent: CALLER }, { traceparent: CALLER });
  expect(app.stored()).toEqual([]);
  expect(app.delivered[0]).not.toHaveProperty('traceparent');
  expect(JSON.parse((await call(app.url, pathOf(id))).text)).not.toHaveProperty('traceparent');
});

it('exports every 5 s; drops what the receiver does not accept, and what exceeds 4,096 spans', async () => {
  const clock = new HeldClock(5_000);
  const receiver = await openTraceReceiver();
  const silent = await serve(() => undefined);
  const tracerFor = (url: string) => {
    const dropped: { spans: number; reason: string }[] = [];
    const tracer = createTracer({
      settings: { url, headers: {}, resource: {} },
      clock,
      version: '1',
      onDropped: (one) => dropped.push(one),
    });
    return { tracer, dropped };
  };
  const well = tracerFor(receiver.url);
  for (const name of ['a', 'b']) well.tracer.start({ name, kind: 'client' }).end();
  clock.fire(5_000);
  await expect.poll(() => receiver.spans.map(({ name }) => name)).toEqual(['a', 'b']);
  expect(well.dropped).toEqual([]);

  const down = tracerFor(await deadAddress());
  for (let span = 0; span < 5_000; span += 1)
    down.tracer.start({ name: 'a', kind: 'client' }).end();
  clock.fire(5_000);
  await expect
    .poll(() => down.dropped)
    .toEqual([
      { spans: 904, reason: 'more spans ended than are kept' },
      { spans: 4_096, reason: 'the receiver of traces cannot be reached' },
    ]);

  const late = tracerFor(silent.url);
  late.tracer.start({ name: 'a', kind: 'client' }).end();
  await late.tracer.close(50);
  await expect
    .poll(() => late.dropped)
    .toEqual([{ spans: 1, reason: 'the receiver of traces did not respond in time' }]);
});

const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' };

it.each<[Record<string, string>, object | undefined]>([
  [{ OTEL_SERVICE_NAME: 'dawatch' }, undefined],
  [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }, undefined],
  [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }, undefined],
  [ENDPOINT, { url: 'http://collector:4318/v1/traces', resource: { 'service.name': 'dawatch' } }],
  [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://b/own' }, { url: 'http://b/own' }],
  [
    { ...ENDPOINT, OTEL_RESOURCE_ATTRIBUTES: 'service.name=x,deployment.environment.name=test' },
    { resource: { 'service.name': 'x', 'deployment.environment.name': 'test' } },
  ],
])('reads the variables %j', (env, expected) => {
  const settings = tracingSettings(env, fail);
  if (expected === undefined) expect(settings).toBeUndefined();
  else expect(settings).toMatchObject(expected);
});

it.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'http://user:secret@collector'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'secret'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%secret'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a(=secret'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'secret'],
])('is off with %s=%s, and one warning names only the variable', (variable, text) => {
  const problems: TracingProblem[] = [];
  const env = { ...ENDPOINT, [variable]: text };
  expect(tracingSettings(env, (problem) => problems.push(problem))).toBeUndefined();
  expect(problems).toEqual([{ variable, reason: expect.stringMatching(/^must be (?!.*secret)/) }]);
});

it.each([
  [CALLER, { traceId: TRACE_ID, spanId: 'b7ad6b7169203331', isSampled: true }],
  [UNSAMPLED, { traceId: TRACE_ID, spanId: 'b7ad6b7169203331', isSampled: false }],
  [CALLER.replace(/^00/, 'cc').concat('-later'), expect.objectContaining({ traceId: TRACE_ID })],
  [CALLER.concat('-more'), undefined],
  [CALLER.replace(/^00/, 'ff'), undefined],
  [CALLER.toUpperCase(), undefined],
  [CALLER.replace(TRACE_ID, '0'.repeat(32)), undefined],
  [undefined, undefined],
])('reads the traceparent %j as W3C defines it', (text, expected) => {
  expect(parseTraceparent(text)).toEqual(expected);
});
