// Tracks and records in a loop, and sends each batch of ids after the ledger acknowledged it. Runs
// until it is killed.

import { context, observation } from '../support/ledger/domain.ts';
import { Ledger } from '../support/ledger/ledger-file.ts';

const [file = '', batchSize = '1', round = '0'] = process.argv.slice(2);
const far = {
  deadlineAt: 1e12,
  graceEndsAt: 1e12,
  stuckAt: 1e12,
  metadata: null,
  callbackUrl: null,
};
const ledger = new Ledger({ file, now: 0 });
ledger.upstream('default');

for (let turn = 0; ; turn++) {
  const ids = Array.from({ length: Number(batchSize) }, (_, index) => `${round}-${turn}-${index}`);
  ledger.track(
    ids.map((submissionId) => ({ submissionId, upstream: 'default', ...far })),
    turn,
  );
  process.send?.({ tracked: ids });
  ledger.record(
    ids.map((id) => observation('pending', turn + 1, id)),
    context(),
  );
  const ended = ids.filter((_, index) => index % 2 === 0);
  ledger.record(
    ended.map((id) => observation('finalized', turn + 2, id)),
    context(),
  );
  process.send?.({ finalized: ended });
  // Yields to the event loop, so that sent messages leave this process.
  await new Promise((resolve) => setImmediate(resolve));
}
