import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { createTracer, type TracerSettings } from '../../src/operations/tracing/tracer.ts';
import { parseTraceparent } from '../../src/submissions/tracing.ts';
import { openTraceReceiver } from '../support/servers/trace-receiver.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const INTERVAL_MS = 5_000;
const sampled = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`;
const unsampled = sampled.replace(/01$/, '00');

/**
 * A tracer whose interval passes when a test says so, with a receiver that first fails with these
 * statuses.
 */
async function openTracer({
  failWith = [],
  ...more
}: { failWith?: number[] } & Partial<TracerSettings> = {}) {
  const receiver = await openTraceReceiver(failWith);
  const clock = new HeldClock(INTERVAL_MS);
  const dropped: { spans: number; reason: string }[] = [];
  const settings = {
    url: receiver.url,
    headers: {},
    timeoutMs: 2_000,
    resource: { 'service.name': 'dawatch' },
  };
  const tracer = createTracer({
    settings: { ...settings, sampleRatio: 1, followsCaller: true, ...more },
    clock,
    version: '1.2.3',
    onDropped: (one) => dropped.push(one),
  });
  onTestFinished(() => tracer.close(0));
  const end = (name: string) => tracer.start({ name, kind: 'internal' }).end();
  return { tracer, receiver, clock, dropped, end };
}

it('exports ended spans together, after the interval', async () => {
  const { receiver, clock, end } = await openTracer();
  for (const name of ['a', 'b', 'c']) end(name);
  expect(receiver.attempts).toBe(0);
  clock.fire(INTERVAL_MS);
  await vi.waitFor(() => expect(receiver.spans.map(({ name }) => name)).toEqual(['a', 'b', 'c']));
  expect(receiver.requests).toMatchObject([
    { resource: { 'service.name': 'dawatch', 'service.version': '1.2.3' } },
  ]);
});

it('exports a full batch at once', async () => {
  const { receiver, end } = await openTracer();
  for (let index = 0; index < 512; index += 1) end('a');
  await vi.waitFor(() => expect(receiver.spans).toHaveLength(512));
});

it('exports a span once, with its error and attributes of every type', async () => {
  const { tracer, receiver } = await openTracer();
  const span = tracer.start({
    name: 'a',
    kind: 'client',
    at: 1_767_323_045_000,
    attributes: { text: 'x', none: undefined },
  });
  span.end({
    at: 1_767_323_045_250,
    error: 'it failed',
    attributes: { whole: 3, part: 0.5, yes: true },
  });
  span.end();
  await tracer.close(1_000);
  expect(receiver.spans).toMatchObject([
    {
      kind: 3,
      startTimeUnixNano: '1767323045000000000',
      endTimeUnixNano: '1767323045250000000',
      status: { code: 2, message: 'it failed' },
      attributes: { text: 'x', whole: '3', part: 0.5, yes: true },
    },
  ]);
});

it('sends spans again after the receiver was away, in their order', async () => {
  const { receiver, clock, dropped, end } = await openTracer({ failWith: [503, 429] });
  end('a');
  for (const attempts of [1, 2, 3]) {
    await vi.waitFor(() => expect(clock.held(INTERVAL_MS)).toBe(1));
    end(`after ${attempts - 1}`);
    clock.fire(INTERVAL_MS);
    await vi.waitFor(() => expect(receiver.attempts).toBe(attempts));
  }
  await vi.waitFor(() =>
    expect(receiver.spans.map(({ name }) => name)).toEqual(['a', 'after 0', 'after 1', 'after 2']),
  );
  expect(dropped).toEqual([]);
});

it('drops and reports spans that the receiver refuses', async () => {
  const { receiver, clock, dropped, end } = await openTracer({ failWith: [401] });
  end('a');
  clock.fire(INTERVAL_MS);
  await vi.waitFor(() =>
    expect(dropped).toEqual([{ spans: 1, reason: 'the receiver of traces responded with 401' }]),
  );
  expect(receiver.spans).toEqual([]);
});

it('keeps at most 4,096 spans while nothing listens, and reports the others', async () => {
  const { tracer, dropped, end } = await openTracer({ url: 'http://127.0.0.1:1/v1/traces' });
  for (let index = 0; index < 5_000; index += 1) end('a');
  await tracer.close(1_000);
  const reason = 'the receiver of traces cannot be reached';
  expect(dropped.reduce((sum, { spans }) => sum + spans, 0)).toBe(5_000);
  expect(dropped.every((one) => one.reason === reason)).toBe(true);
});

it('is closed in time although the receiver does not respond', async () => {
  const silent = createServer(() => undefined).listen(0, '127.0.0.1');
  onTestFinished(() => {
    silent.closeAllConnections();
    silent.close();
  });
  await once(silent, 'listening');
  const { port } = silent.address() as AddressInfo;
  const { tracer, dropped, end } = await openTracer({
    url: `http://127.0.0.1:${port}/`,
    timeoutMs: 60_000,
  });
  end('a');
  await tracer.close(50);
  expect(dropped).toEqual([{ spans: 1, reason: 'the receiver of traces did not respond in time' }]);
  end('b');
  expect(dropped).toHaveLength(1);
});

it.each([
  ['follows a caller that samples', { parent: sampled }, { sampleRatio: 0 }, true],
  ['follows a caller that does not', { parent: unsampled }, {}, false],
  [
    'does not follow a caller with a sampler that is not parent-based',
    { parent: unsampled },
    { followsCaller: false },
    true,
  ],
  ['ignores an invalid caller', { parent: 'no' }, {}, true],
  ['samples no new trace at ratio 0', {}, { sampleRatio: 0 }, false],
  [
    'always samples what is linked with a sampled span',
    { links: [sampled] },
    { sampleRatio: 0 },
    true,
  ],
])('%s', async (_, start, settings, isSampled) => {
  const { tracer } = await openTracer(settings);
  const { traceparent } = tracer.start({ name: 'a', kind: 'server', ...start });
  expect(parseTraceparent(traceparent)?.isSampled ?? false).toBe(isSampled);
});

it('samples the given share of new traces', async () => {
  const { tracer } = await openTracer({ sampleRatio: 0.25 });
  const spans = Array.from({ length: 2_000 }, () => tracer.start({ name: 'a', kind: 'server' }));
  const share = spans.filter(({ traceparent }) => traceparent !== undefined).length / spans.length;
  expect(share).toBeGreaterThan(0.19);
  expect(share).toBeLessThan(0.31);
});

it.each([
  [sampled, { traceId: '1'.repeat(32), spanId: '2'.repeat(16), isSampled: true }],
  [unsampled, { isSampled: false }],
  [sampled.replace(/^00/, 'cc').concat('-later'), { isSampled: true }],
  [sampled.concat('-more'), undefined],
  [sampled.replace(/^00/, 'ff'), undefined],
  [sampled.toUpperCase().replace('00-1', '00-A'), undefined],
  [sampled.replace(/1{32}/, '0'.repeat(32)), undefined],
  [sampled.replace(/2{16}/, '0'.repeat(16)), undefined],
  ['', undefined],
  [undefined, undefined],
])('reads the traceparent %j', (text, expected) => {
  if (expected === undefined) expect(parseTraceparent(text)).toBeUndefined();
  else expect(parseTraceparent(text)).toMatchObject(expected);
});
