// npm run docs:pacing: the pictures of docs/pacing.md, drawn from runs of the benchmark. Argument:
// the folder to write to.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventPacing, type PolicyFactory } from '../../src/pacing/index.ts';
import { seededRandom } from '../support/random.ts';
import { arrivalsOf } from './arrivals.ts';
import { RULES } from './rules.ts';
import { sandboxWorld } from './sandbox-world.ts';
import { type Run, simulate } from './simulate.ts';

const WIDTH = 860;
const ROW = 7;
const LEFT = 46;
const TOP = 34;
const COLORS = {
  submission: '#c9d3df',
  lag: '#e8743b',
  open: '#3b6fb6',
  final: '#2a9d5c',
  text: '#57606a',
};

type Picture = { name: string; title: string; policy: PolicyFactory; fromS: number; toS: number };

const learned = eventPacing({ lagPrice: 1 });
const exponential = RULES.exponential ?? learned;
const PICTURES: readonly Picture[] = [
  { name: 'exponential', title: 'the exponential rule', policy: exponential, fromS: 600, toS: 760 },
  {
    name: 'learning',
    title: 'dawatch, from the first second on',
    policy: learned,
    fromS: 0,
    toS: 200,
  },
  { name: 'learned', title: 'dawatch, ten minutes later', policy: learned, fromS: 600, toS: 760 },
];

const folder = process.argv[2] ?? '.';
mkdirSync(folder, { recursive: true });
for (const picture of PICTURES) {
  const random = seededRandom(1);
  const arrivals = arrivalsOf({ kind: 'poisson', perS: 0.3, submissions: 300 }, random);
  const budget = { requests: 1_000, perMs: 1_000, concurrency: 1_000 };
  const run = simulate({
    world: sandboxWorld({ seed: 1 }),
    arrivals,
    budget,
    policy: picture.policy,
    seed: 1,
  });
  writeFileSync(join(folder, `${picture.name}.svg`), draw(run, picture));
}

/** One line per submission: from its tracking to its finality, its polls, and its lag. */
function draw({ submissions }: Run, { title, fromS, toS }: Picture): string {
  const visible = submissions.filter(
    ({ trackedAt }) => trackedAt >= fromS * 1_000 && trackedAt < (toS - 65) * 1_000,
  );
  const height = TOP + visible.length * ROW + 26;
  const x = (ms: number) =>
    (LEFT + ((ms / 1_000 - fromS) / (toS - fromS)) * (WIDTH - LEFT - 10)).toFixed(1);
  const parts = visible.flatMap(({ trackedAt, finalAt, detectedAt, polledAt }, index) => {
    const y = TOP + index * ROW + ROW / 2;
    const line = (from: number, to: number, color: string) =>
      `<path d="M${x(from)} ${y}H${x(to)}" stroke="${color}" stroke-width="2"/>`;
    const dots = polledAt.map(
      (at) =>
        `<circle cx="${x(at)}" cy="${y}" r="2" fill="${at < finalAt ? COLORS.open : COLORS.final}"/>`,
    );
    return [
      line(trackedAt, finalAt, COLORS.submission),
      line(finalAt, detectedAt, COLORS.lag),
      ...dots,
    ];
  });
  const requests = visible.reduce((sum, { polledAt }) => sum + polledAt.length, 0) / visible.length;
  const lagS =
    visible.reduce((sum, { detectedAt, finalAt }) => sum + detectedAt - finalAt, 0) /
    visible.length /
    1_000;
  const caption = `${title}: ${requests.toFixed(1)} requests each, known after ${lagS.toFixed(1)} s`;
  const seconds = Array.from(
    { length: Math.floor((toS - fromS) / 20) + 1 },
    (_, index) => fromS + index * 20,
  );
  const axis = seconds.map((s) => text(Number(x(s * 1_000)), height - 8, `${s} s`, 'middle'));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11">`,
    `<title>${caption}</title><rect width="100%" height="100%" fill="#fff"/>`,
    text(LEFT, 18, caption, 'start'),
    ...parts,
    ...axis,
    '</svg>',
    '',
  ].join('\n');
}

function text(x: number, y: number, content: string, anchor: string): string {
  return `<text x="${x}" y="${y}" fill="${COLORS.text}" text-anchor="${anchor}">${content}</text>`;
}
