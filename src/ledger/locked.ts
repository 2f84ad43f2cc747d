import { LedgerError } from './errors.ts';

/** How long writes wait while another program has locked the ledger, and between two attempts. */
export const LOCKED_MS = { total: 5_000, rest: 50 } as const;

/** Whether another program has locked the ledger, so that a write is worth another attempt. */
export function isLocked(error: unknown): boolean {
  return error instanceof LedgerError && error.problem === 'locked';
}
