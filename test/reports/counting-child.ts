// Tracks, finalizes and cancels in a loop, with reports. Runs until it is killed.
import { Ledger } from '../../src/wiring/ledger-stores.ts';
import { context, observation } from '../support/ledger/domain.ts';
import { trackRequest } from '../support/ledger/ledger-file.ts';
import { withReports } from '../support/ledger/report-ledger.ts';

const [file = '', round = '0'] = process.argv.slice(2);
const ledger = withReports(new Ledger({ file, now: 0 }));
ledger.upstream('default');

for (let turn = 0; ; turn++) {
  const ids = Array.from({ length: 20 }, (_, index) => `${round}-${turn}-${index}`);
  ledger.track(
    ids.map((id) => trackRequest(id)),
    turn,
  );
  ledger.record(
    ids.slice(0, 10).map((id) => observation('finalized', turn + 1, id)),
    context(),
  );
  ledger.cancel(ids.slice(10), turn + 2);
  if (turn === 0) process.send?.('running');
  await new Promise((resolve) => setImmediate(resolve));
}
