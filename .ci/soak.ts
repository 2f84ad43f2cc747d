// npm run soak -- <minutes>: runs the soak test, 10 minutes by default. It fails if memory or the
// number of handles grows.
import { spawnSync } from 'node:child_process';

const minutes = Number(process.argv[2] ?? 10);
if (!(minutes > 0)) {
  console.error('npm run soak -- <minutes>: a number above 0');
  process.exit(2);
}
const vitest = ['vitest', 'run', '--config', 'vitest.faults.config.ts', 'test/faults/load/soak'];
const { status } = spawnSync('npx', vitest, {
  stdio: 'inherit',
  env: { ...process.env, SOAK_MINUTES: String(minutes) },
});
process.exitCode = status ?? 1;
