import { LedgerError } from './errors.ts';

/** How long writes wait while another program has locked the ledger, and between two attempts. */
export const LOCKED_MS = { total: 5_000, rest: 50 } as const;

/** Whether another program has locked the ledger, so that a write is worth another attempt. */
export function isLocked(error: unknown): boolean {
  return error instanceof LedgerError && error.problem === 'locked';
}

/** Repeats a write while another program has locked the ledger. Other work runs in between. */
export async function retryWhileLocked<T>(write: () => T): Promise<T> {
  const until = performance.now() + LOCKED_MS.total;
  for (;;) {
    try {
      return write();
    } catch (error) {
      if (!isLocked(error) || performance.now() > until) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, LOCKED_MS.rest));
  }
}
