import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { pino } from 'pino';
import { expect, it } from 'vitest';
import { type Clock, systemClock } from '../../src/lib/clock.ts';
import type { EventRecord } from '../../src/notifications/event-body.ts';
import { EventFeed, type EventFilter } from '../../src/notifications/event-feed.ts';
import { seeded } from '../support/seed.ts';
import { eventually } from '../support/until.ts';
import { HeldClock } from '../support/virtual-time/virtual-clock.ts';

/** Events in memory; counts the reads. */
function openLog() {
  const events: EventRecord[] = [];
  const listeners = new Set<() => void>();
  const log = {
    reads: 0,
    missing: 0,
    /** Adds an event; with `response`, about a submission in that state. */
    add(response?: string): void {
      const seq = events.length + 1;
      const about =
        response === undefined
          ? { upstream: 'default' }
          : { submission: { envelope: response }, previous: {} };
      events.push({ seq, id: `evt_${seq}`, at: 0, type: 'upstream.up', ...about } as EventRecord);
      for (const listener of listeners) listener();
    },
    newestSeq: () => events.length,
    missingThrough: () => log.missing,
    after(seq: number, limit: number): EventRecord[] {
      log.reads += 1;
      return events.slice(Math.max(seq, log.missing), Math.max(seq, log.missing) + limit);
    },
    onAppended(listener: () => void): () => void {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  return log;
}

const openFeed = (events: ReturnType<typeof openLog>, clock: Clock = systemClock) =>
  new EventFeed({ events, clock, log: pino({ enabled: false }) });

/** Reads in the background. */
function read(
  feed: EventFeed,
  position: number,
  filter: EventFilter = () => true,
  mayRead = () => true,
) {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  let text = '';
  let chunks = 0;
  let ended = false;
  const stream = feed.open({ position, mayRead, filter, response }).on('data', (chunk) => {
    text += chunk;
    chunks += 1;
  });
  stream.once('end', () => {
    ended = true;
  });
  return {
    text: () => text,
    chunks: () => chunks,
    ended: () => ended,
    leave: () => stream.destroy(),
  };
}

const seqsOf = (reader: { text(): string }) =>
  [...reader.text().matchAll(/^id: (\d+)\nevent/gm)].map(([, seq]) => Number(seq));

it('reads a new event once for all readers, and nothing without readers', async () => {
  const log = openLog();
  const feed = openFeed(log);
  log.add();
  // Twice the turns in which a feed with readers reads.
  for (let turns = 0; turns < 2; turns++) await turn();
  expect(log.reads).toBe(0);
  const readers = Array.from({ length: 100 }, () => read(feed, 1));
  await eventually(() => expect(log.reads).toBe(1));
  for (const seq of [2, 3, 4]) {
    const before = log.reads;
    log.add();
    await eventually(() => {
      for (const { text } of readers)
        expect(text()).toContain(`id: ${seq}\nevent: upstream.up\ndata: {"id":"evt_${seq}"`);
    });
    expect(log.reads - before).toBe(1);
  }
  feed.close();
});

it('sends every reader its matching events once and in order, in any interleaving', async () => {
  const { between } = seeded('feed');
  const log = openLog();
  const clock = new HeldClock(0);
  const feed = openFeed(log, clock);
  const oddSeqs: EventFilter = ({ seq }) => seq % 2 === 1;
  const allSeqs: EventFilter = () => true;
  type Reading = { reader: ReturnType<typeof read>; from: number; filter: EventFilter };
  const [readers, left]: [Reading[], Reading[]] = [[], []];
  for (let step = 0; step < 200; step++) {
    const [act, from] = [between(0, 5), between(0, log.newestSeq())];
    const filter = between(0, 3) === 0 ? oddSeqs : allSeqs;
    if (act === 0 && readers.length < 350)
      readers.push({ reader: read(feed, from, filter), from, filter });
    else if (act === 1 && readers.length > 0) {
      left.push(...readers.splice(between(0, readers.length - 1), 1));
      left.at(-1)?.reader.leave();
    } else if (act === 2)
      for (let count = between(1, between(1, 130)); count > 0; count--) log.add();
    else if (act === 3) await new Promise(setImmediate);
    else clock.fire(between(0, 1) * 25);
    if (step === 0)
      for (let count = 0; count < 240; count++)
        readers.push({ reader: read(feed, 0), from: 0, filter: allSeqs });
  }
  const fireAll = async () => {
    clock.fire(0);
    clock.fire(25);
    await new Promise(setImmediate);
  };
  const all = Array.from({ length: log.newestSeq() }, (_, index) => index + 1);
  for (let turns = 0; turns < all.length; turns++) await fireAll();
  const wantedOf = ({ from, filter }: Reading) =>
    all.filter((seq) => seq > from && filter({ seq } as EventRecord));
  for (const reading of readers) expect(seqsOf(reading.reader)).toEqual(wantedOf(reading));
  for (const reading of left) {
    const seqs = seqsOf(reading.reader);
    expect(seqs).toEqual(wantedOf(reading).slice(0, seqs.length));
  }
  feed.close();
});

it('ends its readers when the log cannot be read, and serves later ones', async () => {
  const log = openLog();
  const feed = openFeed(log);
  const { after } = log;
  const reader = read(feed, 0);
  await eventually(() => expect(log.reads).toBe(1));
  log.after = () => {
    throw new Error('the disk failed');
  };
  log.add();
  await eventually(() => expect(reader.ended()).toBe(true));
  log.after = after;
  const second = read(feed, 0);
  await eventually(() => expect(second.text()).toContain('id: 1\nevent'));
  expect([reader.text(), reader.ended()]).toEqual([expect.not.stringContaining('event'), true]);
  feed.close();
  await eventually(() => expect(second.ended()).toBe(true));
});

const gap = (after: number, through: number) =>
  `id: ${after}\nevent: feed.gap\ndata: {"id":"gap_${after}_${through}","type":"feed.gap","data":{"after":${after},"through":${through}}}\n\n`;

it('reports missing events first, and only to readers that resume before them', async () => {
  const log = openLog();
  for (let count = 0; count < 5; count++) log.add();
  log.missing = 3;
  const feed = openFeed(log);
  const [early, late] = [read(feed, 1), read(feed, 3)];
  for (const { text } of [early, late])
    await eventually(() => expect(text()).toContain('id: 5\nevent: upstream.up'));
  expect(early.text()).toContain(`: dawatch 1\nid: 1\n\n${gap(1, 3)}id: 4\nevent: upstream.up`);
  expect(late.text()).not.toContain('feed.gap');
  feed.close();
});

it('reports a gap once if no event after it is left', async () => {
  const log = openLog();
  for (let count = 0; count < 3; count++) log.add();
  log.missing = 3;
  const clock = new HeldClock(15_000);
  const feed = openFeed(log, clock);
  const reader = read(feed, 0);
  await eventually(() => expect(reader.text()).toContain(gap(0, 3)));
  clock.fire(15_000);
  await eventually(() => expect(reader.text()).toContain(': heartbeat 3\nid: 3\n\n'));
  log.add();
  await eventually(() => expect(reader.text()).toContain('id: 4\nevent: upstream.up'));
  expect(reader.text().split('feed.gap')).toHaveLength(3);
  feed.close();
});

it('ends only the reader whose credential cannot be looked up at a heartbeat', async () => {
  const clock = new HeldClock(15_000);
  const feed = openFeed(openLog(), clock);
  let isBroken = false;
  const failing = read(
    feed,
    0,
    () => true,
    () => {
      if (isBroken) throw new Error('the ledger cannot be read');
      return true;
    },
  );
  const other = read(feed, 0);
  await eventually(() =>
    expect([failing.text(), other.text()]).toEqual(
      Array(2).fill(expect.stringContaining('dawatch')),
    ),
  );
  isBroken = true;
  clock.fire(15_000);
  await eventually(() =>
    expect([failing.ended(), other.text()]).toEqual([true, expect.stringContaining('heartbeat')]),
  );
  expect([other.ended(), clock.held(15_000)]).toEqual([false, 1]);
  feed.close();
});
