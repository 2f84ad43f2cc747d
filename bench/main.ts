// npm run bench [-- <row> …] [-- --write]: compares dawatch with what a user would write or choose
// instead, as one table. Each row is measured in its own process. The exit code is 1 if a target is
// missed or memory grows.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { withPart } from '../.ci/docs/between.ts';
import type { RowResult } from './measure.ts';

const PAGE = join(import.meta.dirname, '../docs/performance.md');
/**
 * The permitted growth of memory from the second to the last round: a tenth, plus an allowance for
 * garbage.
 */
const MAX_RISE = { share: 0.1, mib: 32 };

const { values, positionals } = parseArgs({
  options: { write: { type: 'boolean' } },
  allowPositionals: true,
});
const known = readdirSync(join(import.meta.dirname, 'rows')).map((file) =>
  file.replace(/\.ts$/, ''),
);
const unknown = positionals.filter((name) => !known.includes(name));
if (unknown.length > 0 || (values.write && positionals.length > 0)) {
  console.error(
    `npm run bench [-- <row> …], or all of them with --write. The rows are ${known.toSorted().join(', ')}`,
  );
  process.exit(2);
}

let failed = 0;
const table = [
  '| Measurement | Compared with | Target | Median (minimum to maximum) | On this machine |',
  '|---|---|---|---|---|',
];
const notes: string[] = [];
for (const line of table) console.log(line);
for (const name of known
  .toSorted()
  .filter((name) => positionals.length === 0 || positionals.includes(name))) {
  const { lines, memoryMib } = await measured(name);
  for (const { what, beside, target, value, isMet, context } of lines) {
    if (!isMet) failed += 1;
    const verdict = target === undefined ? '' : `${target} ${isMet ? '✓' : '✗'}`;
    const line = `| ${what} | ${beside ?? ''} | ${verdict} | ${value} | ${context} |`;
    console.log(line);
    table.push(line);
  }
  if (memoryMib.length === 0) continue;
  const isFlat =
    (memoryMib.at(-1) ?? 0) <= (memoryMib[1] ?? 0) * (1 + MAX_RISE.share) + MAX_RISE.mib;
  if (!isFlat) failed += 1;
  notes.push(
    `${isFlat ? '✓' : '✗'} ${name}: ${memoryMib.map(Math.round).join(', ')} MiB after each round`,
  );
}
console.log(`\n${notes.join('\n')}\n${failed === 0 ? 'every target is met' : `missed: ${failed}`}`);
if (values.write)
  writeFileSync(PAGE, withPart(readFileSync(PAGE, 'utf8'), 'table', table.join('\n')));
process.exitCode = failed === 0 ? 0 : 1;

async function measured(name: string): Promise<RowResult> {
  const child = fork(join(import.meta.dirname, 'measure.ts'), [name]);
  const ended = once(child, 'exit');
  const result = await Promise.race([
    once(child, 'message').then(([message]) => message as RowResult),
    ended.then(([code]) =>
      Promise.reject(new Error(`${name} was not measured: its process exited with ${code}`)),
    ),
  ]);
  await ended;
  return result;
}
