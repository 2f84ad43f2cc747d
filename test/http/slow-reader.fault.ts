import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type EventReader, readEvents } from '../support/app/event-reader.ts';
import { post } from '../support/app/http-calls.ts';
import { openApp } from '../support/app/running-app.ts';
import { finalEnvelope } from '../support/ledger/domain.ts';
import { STEP_MS } from '../support/patience.ts';
import { serve } from '../support/servers/upstream-server.ts';
import { tempFolder } from '../support/temp-folder.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

const HEARTBEAT_MS = 15_000;
/** Exceeds the buffers of the operating system for two sockets. */
const EVENTS = 740;
/** Below the size at which an event is truncated. */
const EVENT_BYTES = 18_000;

/** An app in which every submission is finalized with this amount of data. */
async function openVerboseApp(clock: HeldClock) {
  const upstream = await serve((request, response) => {
    const id = new URL(request.url ?? '', 'http://x').searchParams.get('submission_id');
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify(finalEnvelope({ extra: 'x'.repeat(EVENT_BYTES) }, { id })));
  });
  let log = '';
  const app = await openApp({
    database: join(tempFolder(), 'ledger.db'),
    upstreamUrl: upstream.url,
    // A late response would add the event of an outage.
    upstream: { timeout_s: STEP_MS / 1_000 },
    clock,
    onLog: (line) => {
      log += line;
    },
  });
  onTestFinished(() => app.close());
  return { url: app.url, log: () => log };
}

const ids = Array.from({ length: EVENTS }, (_, index) => `s${index}`);
const all = ids.map((_, index) => index + 1);

const seqs = (...readers: EventReader[]) =>
  readers.flatMap(({ received }) => received.map(({ seq }) => seq));

/**
 * Sends heartbeats until the given number of readers is dropped. Returns the bytes that were
 * waiting for each.
 */
async function dropped(app: { log(): string }, clock: HeldClock, count: number): Promise<number[]> {
  const find = () => [...app.log().matchAll(/"waiting_bytes":(\d+).*"feed.slow_client_closed"/g)];
  await eventually(() => {
    clock.fire(HEARTBEAT_MS);
    expect(find()).toHaveLength(count);
  });
  return find().map(([, bytes]) => Number(bytes));
}

it('sends a slow reader everything over one connection; drops readers that do not read, with little memory, and they resume', async () => {
  // Holds no poll: on a slow machine, one may be due later.
  const clock = new HeldClock(HEARTBEAT_MS, HEARTBEAT_MS);
  const app = await openVerboseApp(clock);
  const [slow, live, quick] = [
    await readEvents(app.url),
    await readEvents(app.url),
    await readEvents(app.url),
  ];
  slow.response.pause();
  live.response.pause();
  await post(app.url, { submission_ids: ids });
  await quick.has(EVENTS);
  expect(slow.received).toEqual([]);
  slow.response.resume();
  await slow.has(EVENTS);
  expect(seqs(slow)).toEqual(all);
  const behind = await readEvents(app.url, '?after=0');
  behind.response.pause();
  for (const bytes of await dropped(app, clock, 2)) expect(bytes).toBeLessThan(1_000_000);
  for (const dropped of [live, behind]) {
    dropped.response.resume();
    await dropped.ended;
    const resumed = await readEvents(app.url, '', { 'last-event-id': String(dropped.position()) });
    await resumed.reaches(EVENTS);
    expect(seqs(dropped, resumed)).toEqual(all);
  }
  expect(seqs(quick)).toEqual(all);
});
