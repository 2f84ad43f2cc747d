import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import type { SubmissionQueries } from '../submissions/submission-queries.ts';
import type { SubmissionStore } from '../submissions/submission-store.ts';
import type { UpstreamStore } from '../submissions/upstream.ts';

/** The parts of the ledger that polling uses. */
export type PollingStores = {
  database: LedgerDatabase;
  store: SubmissionStore;
  submissions: SubmissionQueries;
  upstreams: UpstreamStore;
};
