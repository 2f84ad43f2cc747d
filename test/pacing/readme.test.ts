import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { seededRandom } from '../../bench/support/random.ts';
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

it('the example of the README finds each job once, and soon needs the requests and the lag that it states', async () => {
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
  expect(lagS).toBeLessThan(2);
});
