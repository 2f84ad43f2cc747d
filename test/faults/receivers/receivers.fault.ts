import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { rawConnection } from '../../support/ledger/ledger-file.ts';
import { seeded } from '../../support/seed.ts';
import { DAY_MS } from '../../support/virtual-time/virtual-dispatcher.ts';
import { type DayReceiver, openDay } from './receivers-day.ts';

const SUBMISSIONS = 1_200;
const WARM = SUBMISSIONS / 4;
const MIB = 1_048_576;

test('a whole day with receivers of every kind: each event arrives under one id, and no resources stay behind', async () => {
  const { between } = seeded('a day of receivers');
  const day = openDay(between);
  const { world } = day;
  const honest = [await day.honest('honest one'), await day.honest('honest two')];
  const flapping = await day.flapping('flaps, and wants much', { flapping: true });
  const hostile = await day.hostile({ hostile: true });
  const all = [...honest, flapping, ...hostile];

  const times = Array.from({ length: SUBMISSIONS }, () => between(0, DAY_MS - 1)).toSorted(
    (a, b) => a - b,
  );
  let events = 0;
  let warm = { heap: 0, handles: 0 };
  for (const [index, at] of times.entries()) {
    await world.clock.advance(at - (times[index - 1] ?? 0));
    const metadata = { flapping: index % 8 === 0, hostile: index % 80 === 0 };
    events += day.finalize(`day-${index}`, { fails: index % 10 === 0, metadata });
    world.sent.length = 0;
    world.attempted.length = 0;
    if (index === WARM) warm = held();
  }
  await world.clock.advance(60_000);
  const after = held();
  const waiting = statesOf(world.ledger.file);

  // A working receiver gets every event within the minute, whatever the others do.
  for (const receiver of honest)
    expect([receiver.name, receiver.taken.size]).toEqual([receiver.name, events]);
  expect(day.violations).toEqual([]);
  expect(world.errors).toEqual([]);
  expect(after.heap - warm.heap).toBeLessThan(32 * MIB);
  expect(after.handles - warm.handles).toBeLessThan(20);

  // Runs all attempts of failing deliveries until they are dead letters; then their receivers are
  // repaired.
  await world.clock.advance(4.5 * DAY_MS);
  expect(statesOf(world.ledger.file).waiting ?? 0).toBe(0);
  const deadBefore = statesOf(world.ledger.file).dead;
  const takenBefore = flapping.taken.size;
  await day.repair();
  await world.clock.advance(DAY_MS);

  expect(Object.keys(statesOf(world.ledger.file))).toEqual(['delivered']);
  for (const receiver of all) expectAllDelivered(world.ledger.file, receiver);
  expect(day.violations).toEqual([]);
  expect(world.errors).toEqual([]);
  // Nothing is in flight or scheduled.
  expect(world.clock.pending).toBe(0);
  const attempts = all.map(({ name, attempts: count }) => `${name} ${count}`).join(', ');
  console.log(
    `${events} events, deliveries at the end of the day ${JSON.stringify(waiting)}, later ${deadBefore} dead letters`,
  );
  console.log(`attempts: ${attempts}; the flapping one had ${takenBefore} before it was mended`);
  console.log(
    `heap ${mib(warm.heap)} → ${mib(after.heap)} MiB, handles ${warm.handles} → ${after.handles}`,
  );
});

/** Each of its deliveries arrived, with the id and the single body of its event. */
function expectAllDelivered(file: string, { name, webhookId, taken }: DayReceiver): void {
  const sql =
    "SELECT o.id FROM deliveries d JOIN outbox o ON o.seq = d.event WHERE d.destination = ? AND d.state = 'delivered'";
  const ids = rawConnection(file).prepare(sql).pluck().all(`webhook:${webhookId}`) as string[];
  expect(ids.length).toBeGreaterThan(0);
  expect([name, ids.filter((id) => !taken.has(id))]).toEqual([name, []]);
  expect([name, taken.size]).toEqual([name, ids.length]);
  expect([...taken.values()].filter((bodies) => bodies.size !== 1)).toEqual([]);
}

function statesOf(file: string): Record<string, number> {
  const rows = rawConnection(file)
    .prepare('SELECT state, count(*) FROM deliveries GROUP BY state')
    .raw()
    .all();
  return Object.fromEntries(rows as [string, number][]);
}

/**
 * Returns the bytes of the heap after a garbage collection, and the resources that keep the process
 * running.
 */
function held(): { heap: number; handles: number } {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  collect();
  return { heap: process.memoryUsage().heapUsed, handles: process.getActiveResourcesInfo().length };
}

function mib(bytes: number): string {
  return (bytes / MIB).toFixed(0);
}
