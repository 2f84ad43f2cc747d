// Commits to several ledgers on a slow disk, and reports the order in which their syncs and an operation of the thread pool end.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { SyncSlots } from '../../../../src/ledger/file/sync/sync-slots.ts';
import { Ledger } from '../../../../src/ledger/ledger.ts';

const [folder = ''] = process.argv.slice(2);
const slots = new SyncSlots();
const onFailed = (error: unknown) => void process.send?.(String(error));
const ledgers = Array.from(
  { length: 6 },
  (_, index) => new Ledger({ file: join(folder, `${index}.db`), now: 0, deferredSync: { onFailed, slots } }),
);
await Promise.all(ledgers.map((ledger) => ledger.whenDurable()));
process.send?.('opened');
await new Promise((resolve) => process.once('message', resolve));
const ended: string[] = [];
for (const ledger of ledgers) ledger.probe(1);
const all = ledgers.map((ledger) => ledger.whenDurable()?.then(() => ended.push('sync')));
await wait(50);
await readFile(import.meta.filename);
ended.push('read');
await Promise.all(all);
process.send?.(ended);
process.disconnect();
