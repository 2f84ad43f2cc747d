import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
import { type Candidate, eventPacing, NEVER } from '../../src/pacing/index.ts';
import { tempFolder } from '../support/temp-folder.ts';

const PACKAGE = join(import.meta.dirname, '../../src/pacing');

type Poller = { watch(id: string): void; close(): void };
type CreatePoller = (port: {
  isDone(id: string): Promise<boolean>;
  onDone(id: string): void;
}) => Poller;

/** Returns the function of the README, which imports the package from its source. */
async function exampleOfReadme(): Promise<CreatePoller> {
  const code = /```ts\n(.*?)```/s.exec(readFileSync(join(PACKAGE, 'README.md'), 'utf8'))?.[1] ?? '';
  const file = join(tempFolder(), 'poller.mts');
  writeFileSync(
    file,
    code.replace(
      "'@dawatch/pacing'",
      JSON.stringify(pathToFileURL(join(PACKAGE, 'index.ts')).href),
    ),
  );
  return (await import(pathToFileURL(file).href)).createPoller;
}

beforeEach(() => void vi.useFakeTimers({ now: 1_760_000_000_000 }));
afterEach(() => void vi.useRealTimers());

it('the example of the README finds each job once, and soon needs fewer than 3 requests for jobs of a minute', async () => {
  const createPoller = await exampleOfReadme();
  const random = seededRandom(1);
  const jobs = new Map<string, { doneAt: number; requests: number; foundAt: number[] }>();
  const jobOf = (id: string) =>
    jobs.get(id) as { doneAt: number; requests: number; foundAt: number[] };
  const poller = createPoller({
    async isDone(id) {
      const job = jobOf(id);
      job.requests++;
      await new Promise((resolve) => setTimeout(resolve, 50));
      return Date.now() >= job.doneAt;
    },
    onDone: (id) => void jobOf(id).foundAt.push(Date.now()),
  });
  for (let n = 0; n < 200; n++) {
    jobs.set(`job ${n}`, {
      doneAt: Date.now() + 60_000 + 6_000 * random(),
      requests: 0,
      foundAt: [],
    });
    poller.watch(`job ${n}`);
    await vi.advanceTimersByTimeAsync(20_000 * random());
  }
  await vi.advanceTimersByTimeAsync(600_000);
  poller.close();

  const all = [...jobs.values()];
  expect(all.map(({ foundAt }) => foundAt.length)).toEqual(all.map(() => 1));
  const last = all.slice(-100);
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  const requests = mean(last.map((job) => job.requests));
  const lagS = mean(last.map(({ doneAt, foundAt }) => ((foundAt[0] as number) - doneAt) / 1_000));
  expect(requests).toBeLessThan(3);
  expect(lagS).toBeLessThan(4.5);
});

it('the submission of the example is polled when the README says', () => {
  const policy = eventPacing({ lagPrice: 1 })({ reschedule: () => {}, random: () => 0.5 });
  const random = seededRandom(1);
  const zero = Date.UTC(2026, 0, 1, 12);
  // Blocks 23 to 103: the event of block n is 20 s after that of block n - 1.
  const eventAt = (number: number) => zero + 6_000 + 20_000 * (number - 103);
  const blockOf = (sentAt: number) => 103 + Math.ceil((sentAt - eventAt(103)) / 20_000 + 1.15);
  const open = new Map<Candidate, { block: number; finalAt: number }>();
  const submit = (at: number) => {
    const item = { trackedAt: at, dueAt: 0, order: 0, openAt: NEVER };
    item.dueAt = policy.register(item, { polledAt: null }, at);
    const block = blockOf(at);
    open.set(item, { block, finalAt: eventAt(block) + 200 + 800 * random() });
    return item;
  };
  const poll = (now: number) => {
    for (const [item, { block, finalAt }] of open) {
      const dueAt = policy.confirm(item, now);
      Object.assign(item, { dueAt });
      if (dueAt > now) continue;
      const isFinal = now >= finalAt;
      const result = isFinal
        ? ({ kind: 'finalized', blockNumber: block } as const)
        : ({ kind: 'pending' } as const);
      Object.assign(item, {
        dueAt: policy.learn(item, { ...result, at: now, durationMs: 0 }, now),
      });
      if (isFinal) policy.unregister(item, now);
      if (isFinal) open.delete(item);
    }
  };
  let polledAt = 0;
  let example: Candidate | undefined;
  for (let now = eventAt(23); now < eventAt(105) + 5_000; now += 100) {
    if ((now - eventAt(23)) % 20_000 === 0)
      policy.observeHead({ number: 23 + (now - eventAt(23)) / 20_000, at: now }, now);
    if (now === zero + 10_000) example = submit(now);
    else if ((now - eventAt(23)) % 2_500 === 0) submit(now);
    const isOpen = example && example.openAt === NEVER && open.has(example);
    poll(now);
    if (isOpen && example && (!open.has(example) || example.openAt > NEVER)) polledAt = now;
  }
  expect((polledAt - zero) / 1_000).toBeCloseTo(46.9, 1);
});
