// `npm run test:slow` runs `npm test` as on a slow machine: beside four busy loops.
// `npm run test:slow -- FILES` runs these, also tests of the browser and of faults.
import { spawnSync } from 'node:child_process';
import { Worker } from 'node:worker_threads';

const BUSY_LOOPS = 4;
const SUITE = 'vitest.config.ts';
const OTHERS = ['vitest.browser.config.ts', 'vitest.faults.config.ts'];
const files = process.argv.slice(2);

for (let loop = 0; loop < BUSY_LOOPS; loop++)
  await new Promise((resolve) => new Worker('for (;;);', { eval: true }).once('online', resolve));

const configs = files.length > 0 ? [SUITE, ...OTHERS] : [SUITE];
const failed = configs.filter((config) => {
  const args = ['vitest', 'run', '--config', config, '--passWithNoTests', ...files];
  return spawnSync('npx', args, { stdio: 'inherit' }).status !== 0;
});
// The loops end with this process.
process.exit(failed.length === 0 ? 0 : 1);
