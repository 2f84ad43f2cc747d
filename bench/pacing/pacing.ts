// npm run bench:pacing: every scenario with every rule, in virtual time. Arguments: words that the scenario's name has.
import { cohortPacing } from '../../src/monitor/cohort-policy.ts';
import type { PolicyFactory } from '../../src/monitor/policy.ts';
import { seededRandom } from '../support/random.ts';
import { arrivalsOf } from './arrivals.ts';
import { BASELINES } from './baselines.ts';
import { sandboxWorld } from './sandbox-world.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { type Run, simulate } from './simulate.ts';
import { type Summary, summarize } from './summary.ts';

const SEED = Number(process.env.BENCH_SEED ?? 1);
const words = process.argv.slice(2);
const dawatch = cohortPacing({ minIntervalMs: 1_000, maxIntervalMs: 60_000 });

/** A safety net with wider meshes: 3 min while young, 15 min when old. */
const patient = cohortPacing({ minIntervalMs: 1_000, maxIntervalMs: 180_000 });

let missed = 0;
for (const scenario of SCENARIOS.filter(({ name }) => words.every((word) => name.includes(word)))) {
  console.log(`\n${scenario.name}  (${scenario.arrivals.submissions.toLocaleString('en')} submissions)`);
  console.log(line('', ['requests', 'of limit', 'mean lag', 'p50', 'p99', 'worst', '429s']));
  if (scenario.baselines && process.env.BENCH_ONLY !== 'dawatch')
    for (const [name, policy] of Object.entries(BASELINES)) console.log(row(name, summarize(run(scenario, policy))));
  const startedAt = performance.now();
  const own = run(scenario, dawatch);
  const summary = summarize(own);
  console.log(row('dawatch', summary));
  console.log(`  ${verdict(scenario, summary)} · ${((performance.now() - startedAt) / 1_000).toFixed(1)} s to compute`);
  if (scenario.arrivals.kind === 'bursts') console.log(row('ceiling × 3', summarize(run(scenario, patient))));
  if (scenario.arrivals.kind === 'backlog') {
    const { requests, perMs } = scenario.budget;
    const leastS = ((scenario.arrivals.submissions / requests) * perMs) / 1_000;
    console.log(`  everybody asked after ${(own.allAskedAt / 1_000).toFixed(0)} s (the budget needs ${leastS} s)`);
  }
  console.log(`  at most ${own.mostPerWindow} requests in a window of ${scenario.budget.requests}`);
}
if (missed > 0) console.log(`\n${missed} bars missed`);

function run({ upstream, arrivals, budget }: Scenario, policy: PolicyFactory): Run {
  const world = sandboxWorld({ seed: SEED, ...upstream });
  return simulate({ world, arrivals: arrivalsOf(arrivals, seededRandom(SEED)), budget, policy, seed: SEED });
}

function row(name: string, s: Summary): string {
  const cells = [
    s.requests.toFixed(2),
    `${Math.round(100 / s.requests)} %`,
    ...[s.meanS, s.p50S, s.p99S, s.worstS].map(seconds),
  ];
  return line(name, [...cells, String(s.throttled)]);
}

function seconds(s: number): string {
  return `${s.toFixed(2)} s`;
}

function line(name: string, cells: string[]): string {
  return `  ${name.padEnd(12)}${cells.map((cell) => cell.padStart(10)).join('')}`;
}

function verdict({ bars }: Scenario, { requests, meanS, p99S }: Summary): string {
  const told = [
    ['requests', requests, bars.requests],
    ['mean lag', meanS, bars.meanLagS],
    ['p99 lag', p99S, bars.p99LagS],
  ] as const;
  return told
    .filter(([, , bar]) => bar !== undefined)
    .map(([what, value, bar = 0]) => {
      if (value > bar) missed++;
      return value <= bar ? `✓ ${what} ≤ ${bar}` : `✗ ${what} ${value.toFixed(2)} > ${bar}`;
    })
    .join(' · ');
}
