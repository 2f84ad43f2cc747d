import type { HistoryEntry } from '../../../src/domain/submission.ts';
import type { Ledger } from '../../../src/ledger/ledger.ts';

/** Returns the history of a submission, oldest change first; empty for an unknown id. */
export function historyOf({ submissions }: Pick<Ledger, 'submissions'>, submissionId: string): HistoryEntry[] {
  return submissions.getWithHistory(submissionId)?.history ?? [];
}
