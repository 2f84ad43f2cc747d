// Closes a ledger on a faulty disk while a sync is running. The sync of the close fails; the
// running sync succeeds. Reports what follows.
import { setTimeout as wait } from 'node:timers/promises';
import { LedgerError } from '../../src/ledger/errors.ts';
import { Ledger } from '../../src/wiring/ledger-stores.ts';

const [file = ''] = process.argv.slice(2);
const events: string[] = [];
const ledger = new Ledger({
  file,
  now: 0,
  deferredSync: { onFailed: () => events.push('failed') },
});
await ledger.whenDurable();
process.send?.('opened');
await new Promise((resolve) => process.once('message', resolve));
ledger.probe(1);
const settled = ledger.whenDurable()?.then(
  () => events.push('durable'),
  () => events.push('rejected'),
);
// The slow sync of the commit has begun. The next one, which is the one of the close, fails at
// once.
await wait(100);
process.send?.('syncing');
await new Promise((resolve) => process.once('message', resolve));
try {
  ledger.close();
  events.push('closed');
} catch (error) {
  events.push(error instanceof LedgerError ? error.problem : String(error));
}
await settled;
// Until the end of the slow sync.
await wait(1_500);
process.send?.(events);
process.disconnect();
