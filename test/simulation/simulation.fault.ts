import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { tempFolder } from '../support/temp-folder.ts';
import { runProcess } from './run-process.ts';

const TIMEOUT_MS = 180_000;
const without = new Set<string>();

it(
  'repeats a simulation with the same seed, to the same bytes of the ledger',
  async () => {
    const runs = await Promise.all([1, 2].map(() => runProcess({ seed: 8, days: 0.3, without })));
    expect(runs.map(({ defects }) => defects)).toEqual([[], []]);
    expect(runs[1]).toEqual(runs[0]);
  },
  TIMEOUT_MS,
);

it(
  'refuses options that are out of range or exclude each other, with the reason',
  () => {
    const main = join(import.meta.dirname, 'main.ts');
    const refusalOf = (...args: string[]) => {
      const { status, stderr } = spawnSync(process.execPath, [main, ...args], { encoding: 'utf8' });
      return [status, stderr.split('\n')[0]];
    };
    expect(refusalOf('--minutes', '0')).toEqual([2, '0 is not between 0.01 and 10000']);
    expect(refusalOf('--minutes', 'soon')).toEqual([2, 'soon is not between 0.01 and 10000']);
    expect(refusalOf('--minutes=')).toEqual([2, ' is not between 0.01 and 10000']);
    expect(refusalOf('--minutes', '1', '--runs', '2')).toEqual([
      2,
      '--runs and --minutes exclude each other',
    ]);
    expect(refusalOf('--without', 'luck')).toEqual([2, 'luck is not a kind of fault']);
  },
  TIMEOUT_MS,
);

it('ends a run that makes no progress, and no other one, however long it takes', async () => {
  const script = (text: string) => {
    const root = tempFolder();
    mkdirSync(join(root, 'test/simulation'), { recursive: true });
    writeFileSync(join(root, 'test/simulation/simulation-process.ts'), text);
    return root;
  };
  const run = (text: string) => runProcess({ seed: 1, days: 30, without }, script(text), 5_000);
  const stuck = await run("setInterval(() => {}, 1_000); console.log('hour 1');");
  expect(stuck.defects).toEqual(['the process made no progress for 5 s: hour 1\n']);
  const slow = await run(`
    let hour = 0;
    setInterval(() => {
      console.log('hour ' + ++hour);
      if (hour === 15) console.log('result: ' + JSON.stringify({ defects: [] }));
      if (hour === 15) process.exit();
    }, 500);`);
  expect(slow.defects).toEqual([]);
}, 60_000);
