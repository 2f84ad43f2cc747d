// npm run soak -- <minutes>: the soak test for that long, 10 minutes without a number. It fails if memory or handles rise.
import { spawnSync } from 'node:child_process';

const minutes = Number(process.argv[2] ?? 10);
if (!(minutes > 0)) {
  console.error('npm run soak -- <minutes>: a number above 0');
  process.exit(2);
}
const vitest = ['vitest', 'run', '--config', 'vitest.faults.config.ts', 'test/faults/soak'];
const { status } = spawnSync('npx', vitest, {
  stdio: 'inherit',
  env: { ...process.env, SOAK_MINUTES: String(minutes) },
});
process.exitCode = status ?? 1;
