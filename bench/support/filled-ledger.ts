import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { Ledger } from '../../src/wiring/ledger-stores.ts';

const PER_COMMIT = 10_000;

/**
 * Creates the ledger of a server that will start in `folder`, with `submissions` tracked
 * submissions. Returns their ids.
 */
export function fillLedger(folder: string, submissions: number): string[] {
  const now = Date.now();
  const ledger = new Ledger({ file: join(folder, 'ledger.db'), now });
  ledger.upstreams.get('default');
  const limits = {
    deadlineAt: now + 86_400_000,
    graceEndsAt: now + 86_400_000,
    stuckAt: now + 86_400_000,
  };
  const ids = Array.from({ length: submissions }, () => randomUUID() as string);
  for (let from = 0; from < submissions; from += PER_COMMIT) {
    const batch = ids.slice(from, from + PER_COMMIT);
    const fields = { upstream: 'default', metadata: null, callbackUrl: null, ...limits };
    ledger.store.track([batch.map((submissionId) => ({ submissionId, ...fields }))], now);
  }
  ledger.close();
  return ids;
}
