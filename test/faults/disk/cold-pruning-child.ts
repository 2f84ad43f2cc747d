// Opens a ledger, waits for a message, and deletes old submissions as a server does, without its
// pauses of a minute.
import { once } from 'node:events';
import { systemClock } from '../../../src/lib/system-clock.ts';
import { Ledger } from '../../../src/wiring/ledger-stores.ts';
import { Maintenance, type PrunedCounts } from '../../../src/wiring/maintenance.ts';

const [file = '', maxAgeMs = ''] = process.argv.slice(2);
const MAX_PAUSE_MS = 10;
const onFailed = (error: unknown) => {
  throw error;
};
const ledger = new Ledger({ file, now: Date.now(), deferredSync: { onFailed } });
process.send?.('opened');
await once(process, 'message');
const maintenance = new Maintenance({
  ledger,
  clock: {
    now: () => systemClock.now(),
    after: (ms, run) => systemClock.after(Math.min(ms, MAX_PAUSE_MS), run),
  },
  retention: {
    deliveriesMs: Number.MAX_SAFE_INTEGER,
    submissionsMs: Number(maxAgeMs),
    submissions: null,
    auditMs: null,
  },
  features: [],
  onPruned: (counts: PrunedCounts) => process.send?.(counts),
  onFailed,
});
maintenance.start();
