// Inserts the same rows as tracking does, with better-sqlite3 alone.
import { randomUUID } from 'node:crypto';
import { openBareLedger } from './bare-ledger.ts';

const [file, batches, size] = JSON.parse(process.argv[2] ?? '[]') as [string, number, number];
const { insert } = openBareLedger(file, { syncs: 'each commit' });
const startedAt = performance.now();
for (let batch = 0; batch < batches; batch += 1)
  insert(Array.from({ length: size }, () => randomUUID()));
console.log(
  JSON.stringify({ perSecond: (batches * size * 1_000) / (performance.now() - startedAt) }),
);
