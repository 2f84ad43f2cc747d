// npm run powerloss [-- <images>]: audits this number of images of a loss of power, 10,000 by
// default.
import { spawnSync } from 'node:child_process';

const [images = '10000', ...more] = process.argv.slice(2);
if (!/^[1-9]\d{0,6}$/.test(images) || more.length > 0) {
  console.error('npm run powerloss -- <number of images, 1 to 9999999>');
  process.exit(2);
}
const args = [
  'vitest',
  'run',
  '--config',
  'vitest.faults.config.ts',
  'power-loss',
  '--testTimeout',
  '0',
];
const { status } = spawnSync('npx', args, {
  stdio: 'inherit',
  env: { ...process.env, POWER_LOSS_IMAGES: images },
});
process.exit(status ?? 1);
