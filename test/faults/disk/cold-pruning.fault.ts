import { join } from 'node:path';
import { expect, test } from 'vitest';
import { fillLargeLedger } from '../../../bench/support/large-ledger/fill.ts';
import type { PrunedCounts } from '../../../src/wiring/maintenance.ts';
import { integrityOf } from '../../support/ledger/ledger-file.ts';
import { startChild } from '../../support/processes/child-process.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { openFaultyDisk } from './faulty-disk.ts';
import { isCompilerMissing } from './preload.ts';

/**
 * Many times the memory that a connection has for pages, so that nothing but the disk has most of
 * them.
 */
const SUBMISSIONS = 60_000;
const DAY_MS = 24 * 3_600_000;
/** The submissions have ended evenly over 28 days. */
const MAX_AGE_MS = 26 * DAY_MS;

test.skipIf(isCompilerMissing())(
  'pruning a ledger that is not in memory does not stop the event loop for the disk',
  async () => {
    const folder = tempFolder();
    fillLargeLedger(folder, SUBMISSIONS);
    const file = join(folder, 'ledger.db');
    const disk = openFaultyDisk(tempFolder(), folder);
    const child = startChild(
      new URL('./cold-pruning-child.ts', import.meta.url),
      [file, String(MAX_AGE_MS)],
      {
        env: { ...process.env, ...disk.env },
      },
    );
    expect(await child.message()).toBe('opened');
    disk.set({ coldReadDelayMs: 1 });
    child.process.send('prune');
    const { submissions } = (await Promise.race([child.message(), child.exited])) as PrunedCounts;
    expect(submissions).toBeGreaterThan(SUBMISSIONS / 20);
    const [waited, ahead] = [disk.coldReads('mainThread'), disk.coldReads('others')];
    console.log(
      `${submissions} submissions: ${ahead} pages were read ahead, ${waited} by the event loop`,
    );
    expect(waited).toBeLessThan(ahead * 0.03);
    await child.kill();
    expect(integrityOf(file)).toBe('ok');
  },
);
