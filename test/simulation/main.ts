// npm run simulate: see USAGE.
import { parseArgs } from 'node:util';
import { commandOf, runProcess } from './run-process.ts';
import { shrink } from './shrink.ts';
import type { Result, Settings } from './simulate.ts';
import { ACTIONS, FAULTS, OCCURRENCES } from './world/faults.ts';

/**
 * They cover every kind of fault. 5, 6 and 31 have workers; only after more than two days
 * submissions are deleted.
 */
const FIXED_RUNS = [
  { seed: 1, days: 4 },
  { seed: 5, days: 1 },
  { seed: 6, days: 1 },
  { seed: 31, days: 1 },
  // A loss of power undid the record that polls might be sent, and the next process exceeded the
  // request budget.
  { seed: 403_940_246, days: 0.21 },
  // 190 pauses in a row, each begun by eight responses: the check allowed for less than they took.
  { seed: 422_654_157, days: 0.1 },
] as const;
const KINDS: readonly string[] = [...FAULTS, ...ACTIONS];
const USAGE = `npm run simulate -- [options]
  --seed <number>      of the first run; default: a new one
  --days <number>      virtual days of each run; default: 30
  --runs <number>      runs with this seed and the following ones; default: 1
  --minutes <number>   instead of --runs: such runs until the time is over, at least one
  --without <kind>,…   leaves faults out: ${KINDS.join(', ')}
  --fixed              the same runs each time; fails if a kind of fault did not occur in any of them`;

/**
 * Prints the result of a run. If it failed, also its smallest form. Returns what occurred;
 * undefined: it failed.
 */
async function run(settings: Settings): Promise<Result['occurrences'] | undefined> {
  const startedAt = performance.now();
  const result = await runProcess(settings);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const counts = Object.entries(result.counts).map(([name, count]) => `${count} ${name}`);
  console.log(
    `seed ${settings.seed}: ${settings.days} days in ${seconds} s: ${counts.join(', ')}; ledger ${result.digest.slice(0, 12)}`,
  );
  if (result.defects.length === 0) return result.occurrences;
  console.log(result.defects.join('\n'));
  console.log('searching a shorter run …');
  const smallest = await shrink(settings, result);
  console.log(
    [...smallest.result.lines, ...smallest.result.defects, commandOf(smallest.settings)].join('\n'),
  );
  return undefined;
}

async function runFixed(): Promise<boolean> {
  const occurred = new Set<string>();
  for (const settings of FIXED_RUNS) {
    const occurrences = await run({ ...settings, without: new Set() });
    if (!occurrences) return false;
    for (const name of Object.keys(occurrences)) occurred.add(name);
  }
  const missing = OCCURRENCES.filter((name) => !occurred.has(name));
  if (missing.length > 0) console.log(`did not occur: ${missing.join(', ')}`);
  return missing.length === 0;
}

/** Throws for a text that is not a number in this range. */
function numberIn(text: string, min: number, max: number): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= min && value <= max))
    throw new Error(`${text} is not between ${min} and ${max}`);
  return value;
}

try {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  const { values } = parseArgs({
    options: { seed: text, days: text, runs: text, minutes: text, without: text, fixed: flag },
  });
  if (values.fixed && Object.keys(values).length > 1)
    throw new Error('--fixed excludes all other options');
  const seed = numberIn(values.seed ?? String(Date.now() % 2 ** 31), 0, 2 ** 31);
  const days = numberIn(values.days ?? '30', 0.01, 3_650);
  if (values.runs !== undefined && values.minutes !== undefined)
    throw new Error('--runs and --minutes exclude each other');
  const runs =
    values.minutes === undefined
      ? numberIn(values.runs ?? '1', 1, 1_000_000)
      : Number.POSITIVE_INFINITY;
  const endsAt = performance.now() + numberIn(values.minutes ?? '1', 0.01, 10_000) * 60_000;
  const without = new Set(values.without?.split(',') ?? []);
  for (const kind of without)
    if (!KINDS.includes(kind)) throw new Error(`${kind} is not a kind of fault`);
  const isInTime = () => values.minutes === undefined || performance.now() < endsAt;
  let hasPassed = true;
  if (values.fixed) hasPassed = await runFixed();
  else
    for (let index = 0; index < runs && hasPassed && (index === 0 || isInTime()); index++)
      hasPassed = (await run({ seed: seed + index, days, without })) !== undefined;
  process.exitCode = hasPassed ? 0 : 1;
} catch (error) {
  console.error(`${(error as Error).message}\n${USAGE}`);
  process.exitCode = 2;
}
