import type { HistoryEntry } from '../../../src/submissions/submission.ts';
import type { Ledger } from '../../../src/wiring/ledger-stores.ts';

/** Returns the history of a submission, oldest change first; empty for an unknown id. */
export function historyOf(
  { submissions }: Pick<Ledger, 'submissions'>,
  submissionId: string,
): HistoryEntry[] {
  return submissions.getWithHistory(submissionId)?.history ?? [];
}
