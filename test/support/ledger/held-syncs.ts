import fs, { fstatSync, statSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { onTestFinished } from 'vitest';

/**
 * Holds the syncs of the logs of these ledgers, as by a disk that hangs, until `release` or the end
 * of the test.
 */
export function holdSyncs(...ledgers: string[]) {
  const { fdatasync } = fs;
  const logs = new Set(ledgers.map((file) => statSync(`${file}-wal`).ino));
  const held: (() => void)[] = [];
  const replaced = (fd: number, done: fs.NoParamCallback) => {
    if (logs.has(fstatSync(fd).ino)) held.push(() => fdatasync(fd, done));
    else fdatasync(fd, done);
  };
  const use = (value: typeof fdatasync) => {
    Object.assign(fs, { fdatasync: value });
    syncBuiltinESMExports();
  };
  use(Object.assign(replaced, { __promisify__: fdatasync.__promisify__ }));
  const release = () => {
    use(fdatasync);
    for (const sync of held.splice(0)) sync();
  };
  onTestFinished(release);
  return { release, isHolding: () => held.length > 0 };
}
