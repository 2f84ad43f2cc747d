// `npm run test:slow [-- FILES]` runs tests as on a slow machine: beside four busy loops.
import { spawnSync } from 'node:child_process';
import { Worker } from 'node:worker_threads';

const BUSY_LOOPS = 4;
const CONFIGS = ['vitest.config.ts', 'vitest.browser.config.ts', 'vitest.faults.config.ts'];

for (let loop = 0; loop < BUSY_LOOPS; loop++)
  await new Promise((resolve) => new Worker('for (;;);', { eval: true }).once('online', resolve));

const failed = CONFIGS.filter((config) => {
  const args = ['vitest', 'run', '--config', config, '--passWithNoTests', ...process.argv.slice(2)];
  return spawnSync('npx', args, { stdio: 'inherit' }).status !== 0;
});
// The loops end with this process.
process.exit(failed.length === 0 ? 0 : 1);
