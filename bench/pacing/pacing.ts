// npm run bench:pacing: every scenario with every policy, in virtual time. Each column shows the
// median and the worst of the seeds. Arguments: words that select scenarios by name.
// BENCH_SEEDS=13,14: seeds, default 1 to 12. BENCH_ONLY=dawatch,dawatch+chain: some policies.
// BENCH_JSON=file: writes all runs to a file. Exits with code 1 when a bar is missed.

import { writeFileSync } from 'node:fs';
import type { Results } from './bars.ts';
import { lowerBound } from './lower-bound.ts';
import { type Measurement, POLICY_NAMES } from './measure.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { median, type Summary } from './summary.ts';
import { startThreads } from './threads.ts';

type Column = { name: string; key: keyof Summary & string; digits: number };
const COLUMNS: Column[] = [
  { name: 'requests', key: 'requests', digits: 2 },
  { name: 'mean lag (s)', key: 'meanS', digits: 2 },
  { name: 'p99 lag (s)', key: 'p99S', digits: 1 },
  { name: 'cost', key: 'cost', digits: 2 },
  { name: '429s', key: 'throttled', digits: 0 },
  { name: 'estimated mean', key: 'estimatedMeanS', digits: 2 },
  { name: 'p99', key: 'estimatedP99S', digits: 1 },
];
const CELL = 16;

const seeds = (process.env.BENCH_SEEDS ?? '1,2,3,4,5,6,7,8,9,10,11,12').split(',').map(Number);
const only = process.env.BENCH_ONLY?.split(',');
const policies = POLICY_NAMES.filter((name) => only?.includes(name) ?? true);
const words = process.argv.slice(2);
const scenarios = SCENARIOS.filter(({ name }) => words.every((word) => name.includes(word)));
if (scenarios.length === 0) throw new Error(`no scenario has ${words.join(' and ')} in its name`);
if (!seeds.every(Number.isSafeInteger))
  throw new Error('BENCH_SEEDS must be whole numbers, separated by commas');
if (policies.length === 0) throw new Error(`BENCH_ONLY must be of ${POLICY_NAMES.join(', ')}`);
const startedAt = performance.now();
const runs: (Measurement & Summary)[] = [];
let missed = 0;

const threads = startThreads();
try {
  // All runs start at once; the results are shown in order.
  const measured = scenarios.map((scenario) => ({
    scenario,
    runs: Promise.all(
      measurementsOf(scenario).map(async (measurement) => ({
        ...measurement,
        ...(await threads.measure(measurement)),
      })),
    ),
  }));
  for (const { scenario, runs: pending } of measured) {
    const finished = await pending;
    runs.push(...finished);
    report(scenario, (policy, nodes) =>
      finished.filter((run) => run.policy === policy && run.nodes === nodes),
    );
  }
} finally {
  await threads.close();
}
if (process.env.BENCH_JSON) writeFileSync(process.env.BENCH_JSON, JSON.stringify(runs));
const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
console.log(`\n${missed === 0 ? 'all bars are met' : `${missed} bars are missed`} · ${seconds} s`);
if (missed > 0) process.exitCode = 1;

function measurementsOf({ name: scenario, nodes }: Scenario): Measurement[] {
  return nodes.flatMap((node) =>
    policies
      .filter((policy) => policy.endsWith('+chain') === (node !== 'none'))
      .flatMap((policy) => seeds.map((seed) => ({ scenario, policy, nodes: node, seed }))),
  );
}

function report(scenario: Scenario, results: Results): void {
  const submissions = scenario.arrivals.submissions.toLocaleString('en');
  console.log(`\n${scenario.name}  (${submissions} submissions, ${seeds.length} seeds)`);
  console.log(line('', [...COLUMNS.map(({ name }) => name)]));
  for (const nodes of scenario.nodes)
    for (const policy of policies) {
      const summaries = results(policy, nodes);
      if (summaries.length === 0) continue;
      const name = nodes === 'none' ? policy : `${policy}, ${nodes}`;
      console.log(line(name, [...COLUMNS.map((column) => cell(column, summaries))]));
    }
  if (scenario.hasLowerBound) console.log(line('lower bound', boundCells(scenario)));
  for (const { name, limit, value } of scenario.bars) {
    const reached = value(results);
    if (Number.isNaN(reached)) continue;
    const isMet = reached <= limit;
    if (!isMet) missed++;
    console.log(`  ${isMet ? '✓' : '✗'} ${name}: ${reached.toFixed(2)}, at most ${limit}`);
  }
}

/** The median and the worst. */
function cell({ key, digits }: Column, summaries: readonly Summary[]): string {
  const values = summaries.map((summary) => Number(summary[key]));
  return `${median(values).toFixed(digits)} ${Math.max(...values)
    .toFixed(digits)
    .padStart(5)}`;
}

function boundCells({ upstream }: Scenario): string[] {
  const { requests, meanS } = lowerBound(upstream.world, (upstream.senders ?? 0) > 0);
  return [requests.toFixed(2), meanS.toFixed(2), '', (requests + meanS).toFixed(2)].map((text) =>
    text === '' ? '' : `${text}      `,
  );
}

function line(name: string, shown: readonly string[]): string {
  return `  ${name.padEnd(40)}${shown.map((text) => text.padStart(CELL)).join('')}`.trimEnd();
}
