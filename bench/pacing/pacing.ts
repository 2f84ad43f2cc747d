// npm run bench:pacing: every scenario with every policy, in virtual time. Each column shows the
// worst of the seeds. Arguments: words that select scenarios by name. BENCH_SEEDS=4,5: seeds,
// default 1,2,3. BENCH_ONLY=dawatch: one policy. Exits with code 1 when a bar is missed.

import { lowerBound } from './lower-bound.ts';
import { POLICY_NAMES, WITH_CHAIN } from './measure.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import type { Summary } from './summary.ts';
import { startThreads } from './threads.ts';

type Worst = Summary & { cost: number };

const COLUMNS: { name: string; key: keyof Worst; format: (value: number) => string }[] = [
  { name: 'requests', key: 'requests', format: (value) => value.toFixed(2) },
  { name: 'mean lag', key: 'meanS', format: (value) => `${value.toFixed(2)} s` },
  { name: 'p99 lag', key: 'p99S', format: (value) => `${value.toFixed(1)} s` },
  { name: 'sum', key: 'cost', format: (value) => value.toFixed(2) },
  { name: '429s', key: 'throttled', format: String },
  { name: 'estimated mean', key: 'estimatedMeanS', format: (value) => `${value.toFixed(2)} s` },
  { name: 'p99', key: 'estimatedP99S', format: (value) => `${value.toFixed(1)} s` },
];
const CELL = 17;

const seeds = (process.env.BENCH_SEEDS ?? '1,2,3').split(',').map(Number);
const policies = POLICY_NAMES.filter((name) => [undefined, name].includes(process.env.BENCH_ONLY));
const words = process.argv.slice(2);
const scenarios = SCENARIOS.filter(({ name }) => words.every((word) => name.includes(word)));
if (scenarios.length === 0) throw new Error(`no scenario has ${words.join(' and ')} in its name`);
if (!seeds.every(Number.isSafeInteger))
  throw new Error('BENCH_SEEDS must be whole numbers, separated by commas');
if (policies.length === 0) throw new Error(`BENCH_ONLY must be one of ${POLICY_NAMES.join(', ')}`);
const startedAt = performance.now();
let missed = 0;

const threads = startThreads();
try {
  // All runs start at once; the results are shown in order.
  const measured = scenarios.map((scenario) => ({
    scenario,
    rows: policies.map((policy) => ({
      policy,
      summaries: Promise.all(
        seeds.map((seed) => threads.measure({ scenario: scenario.name, policy, seed })),
      ),
    })),
  }));
  for (const { scenario, rows } of measured) {
    const submissions = scenario.arrivals.submissions.toLocaleString('en');
    console.log(
      `\n${scenario.name}  (${submissions} submissions, the worst of seeds ${seeds.join(', ')})`,
    );
    console.log(
      line(
        '',
        COLUMNS.map(({ name }) => name),
      ),
    );
    for (const { policy, summaries } of rows) {
      const worst = worstOf(await summaries);
      console.log(line(policy, cells(worst, barsOf(scenario, policy))));
    }
    if (scenario.hasLowerBound) console.log(line('lower bound', boundCells(scenario)));
  }
} finally {
  await threads.close();
}
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
console.log(`\n${missed === 0 ? 'all bars are met' : `${missed} bars are missed`} · ${seconds} s`);
if (missed > 0) process.exitCode = 1;

function barsOf({ bars, chainBars = {} }: Scenario, policy: string): Partial<Worst> {
  if (policy === WITH_CHAIN) return chainBars;
  return policy === 'dawatch' ? bars : {};
}

function worstOf(summaries: readonly Summary[]): Worst {
  const maxOf = (of: (summary: Summary) => number) => Math.max(...summaries.map(of));
  return {
    requests: maxOf(({ requests }) => requests),
    meanS: maxOf(({ meanS }) => meanS),
    p99S: maxOf(({ p99S }) => p99S),
    cost: maxOf(({ requests, meanS }) => requests + meanS),
    throttled: maxOf(({ throttled }) => throttled),
    estimatedMeanS: maxOf(({ estimatedMeanS }) => estimatedMeanS),
    estimatedP99S: maxOf(({ estimatedP99S }) => estimatedP99S),
  };
}

function cells(worst: Worst, bars: Partial<Worst>): string[] {
  return COLUMNS.map(({ key, format }) => {
    const [value, bar] = [worst[key], bars[key]];
    if (bar === undefined) return format(value);
    const isMet = value <= bar;
    if (!isMet) missed++;
    return `${format(value)} ${isMet ? '✓' : '✗'} ${Number(bar.toFixed(2))}`;
  });
}

function boundCells({ upstream }: Scenario): string[] {
  const { requests, meanS } = lowerBound(upstream.world, (upstream.senders ?? 0) > 0);
  return [requests.toFixed(2), `${meanS.toFixed(2)} s`, '', (requests + meanS).toFixed(2), ''];
}

function line(name: string, shown: readonly string[]): string {
  return `  ${name.padEnd(14)}${shown.map((cell) => cell.padStart(CELL)).join('')}`.trimEnd();
}
