// npm run simulate: see USAGE.
import { parseArgs } from 'node:util';
import { commandOf, runProcess } from './run-process.ts';
import type { Result, Settings } from './simulate.ts';
import { ACTIONS, FAULTS, OCCURRENCES } from './world/faults.ts';

/** They cover every kind of fault. Only after more than two days submissions are deleted. */
const FIXED_RUNS = [
  { seed: 1, days: 4 },
  { seed: 1626, days: 1 },
] as const;
const KINDS: readonly string[] = [...FAULTS, ...ACTIONS];
const USAGE = `npm run simulate -- [options]
  --seed <number>      of the first run; default: a new one
  --days <number>      virtual days of each run; default: 30
  --minutes <number>   further runs, with the following seeds, until the time is over; default: 0
  --without <kind>,…   leaves faults out: ${KINDS.join(', ')}
  --fixed              the same runs each time; fails if a kind of fault did not occur in any of them`;

/** Prints the result of a run. Returns what occurred; undefined: it failed. */
async function run(settings: Settings): Promise<Result['occurrences'] | undefined> {
  const startedAt = performance.now();
  const result = await runProcess(settings);
  const seconds = Math.round((performance.now() - startedAt) / 1_000);
  const counts = Object.entries(result.counts).map(([name, count]) => `${count} ${name}`);
  console.log(
    `seed ${settings.seed}: ${settings.days} days in ${seconds} s: ${counts.join(', ')}; ledger ${result.digest.slice(0, 12)}`,
  );
  if (result.defects.length === 0) return result.occurrences;
  // Hundredths of days, so that the command is short.
  const days = Math.min(settings.days, Math.ceil(result.days * 100) / 100);
  console.log([...result.lines, ...result.defects, commandOf({ ...settings, days })].join('\n'));
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

async function runRandom(values: {
  seed?: string;
  days?: string;
  minutes?: string;
  without?: string;
}): Promise<boolean> {
  const seed = numberIn(values.seed ?? String(Date.now() % 2 ** 31), 0, 2 ** 31);
  const days = numberIn(values.days ?? '30', 0.01, 3_650);
  const endsAt = performance.now() + numberIn(values.minutes ?? '0', 0, 10_000) * 60_000;
  const without = new Set(values.without?.split(',') ?? []);
  for (const kind of without)
    if (!KINDS.includes(kind)) throw new Error(`${kind} is not a kind of fault`);
  for (let index = 0; index === 0 || performance.now() < endsAt; index++)
    if (!(await run({ seed: seed + index, days, without }))) return false;
  return true;
}

try {
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { seed: text, days: text, minutes: text, without: text, fixed: { type: 'boolean' } },
  });
  const hasPassed = values.fixed ? await runFixed() : await runRandom(values);
  process.exitCode = hasPassed ? 0 : 1;
} catch (error) {
  console.error(`${(error as Error).message}\n${USAGE}`);
  process.exitCode = 2;
}
