// Tracks, finalizes, audits and prunes in turn, and sends the open ids after each acknowledgment.
// Runs until it is killed.
import { SERVER } from '../../src/lib/actor.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { Ledger } from '../support/ledger/ledger-file.ts';

const [file = '', round = '0'] = process.argv.slice(2);
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
  const ids = Array.from({ length: 20 }, (_, index) => `${round}-${turn}-${index}`);
  ledger.track(
    ids.map((submissionId) => ({ submissionId, upstream: 'default', ...far })),
    0,
  );
  const [open = '', ...others] = ids;
  ledger.record(
    others.map((id) => observation('finalized', turn, id)),
    context(),
  );
  process.send?.(open);
  const everything = { after: { endedAt: -1, id: 0 }, before: turn };
  ledger.pruning.submissions({ ...everything, limit: 15 });
  ledger.audit.append(SERVER, turn, { action: 'tokens.revoke', subject: String(turn) });
  ledger.audit.prune(turn, turn, 2);
  await new Promise((resolve) => setImmediate(resolve));
}
