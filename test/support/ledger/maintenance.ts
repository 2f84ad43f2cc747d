import { onTestFinished } from 'vitest';
import { Maintenance, type PrunedCounts, type Retention } from '../../../src/wiring/maintenance.ts';
import { createVirtualClock } from '../virtual-time/virtual-clock.ts';
import type { Ledger } from './ledger-file.ts';

export const HOUR_MS = 3_600_000;
const KEEP_ALL: Retention = {
  deliveriesMs: 366 * 24 * HOUR_MS,
  submissionsMs: null,
  auditMs: Number.POSITIVE_INFINITY,
};

/** The real maintenance of a ledger, in virtual time. */
export function openMaintenance(ledger: Ledger, keeping: Partial<Retention>, startMs = 0) {
  const clock = createVirtualClock(startMs);
  const pruned: PrunedCounts[] = [];
  const errors: unknown[] = [];
  const maintenance = new Maintenance({
    ledger,
    clock,
    retention: { ...KEEP_ALL, ...keeping },
    onPruned: (counts) => pruned.push(counts),
    onFailed: (error) => errors.push(error),
  });
  maintenance.start();
  onTestFinished(() => maintenance.stop());
  return { clock, pruned, errors, maintenance };
}
