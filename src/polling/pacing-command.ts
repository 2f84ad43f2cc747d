import type { Command } from 'commander';
import { type ConnectOptions, connect, withServer } from '../cli/connect.ts';
import { plural, toJson } from '../cli/output.ts';
import type { UpstreamPacing } from '../client/index.ts';
import { escapeText } from '../lib/text.ts';

/** Returns the interpolated time of the probability; null if the curve ends before it. */
function quantileMs(curve: UpstreamPacing['curve'], probability: number): number | null {
  const index = curve.findIndex((point) => point.probability >= probability);
  const after = curve[index];
  if (!after) return null;
  const before = curve[index - 1] ?? { after_ms: 0, probability: 0 };
  const span = after.probability - before.probability;
  const part = span > 0 ? (probability - before.probability) / span : 1;
  return before.after_ms + part * (after.after_ms - before.after_ms);
}

/** 450 ms · 4.2 s · 41 s · 3 min · 2 h · 4 d */
function roughly(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  if (ms < 9_950) return `${(ms / 1_000).toFixed(1)} s`;
  if (ms < 119_500) return `${Math.round(ms / 1_000)} s`;
  if (ms < 119.5 * 60_000) return `${Math.round(ms / 60_000)} min`;
  return ms < 47.5 * 3_600_000
    ? `${Math.round(ms / 3_600_000)} h`
    : `${Math.round(ms / 86_400_000)} d`;
}

const MODES: Record<string, string> = {
  heads: 'a node of the chain announces each final block',
  slots: 'submissions become final in groups, at the slots of a chain',
  age: 'no periodic pattern is known, so each submission is polled by its age',
};
const REASONS: Record<string, string> = {
  slot: 'likely to become final in this slot',
  head: 'likely to be in a block that the chain has announced as final',
  scout: 'polled first, as a sample of the submissions that are likely to become final with it',
  age: 'polled by its age',
  net: 'not polled for the maximum time',
  recheck: 'final, polled once more to detect a correction',
  probe: 'tests whether the upstream works',
};
const HELD_BY: Record<string, string> = {
  budget: 'waits for the request budget',
  pause: 'paused by Retry-After until then',
};
const QUANTILES = [0.5, 0.9, 0.99];
const MAX_POLLS = 5;

export function addPacing(program: Command): void {
  withServer(program.command('pacing'))
    .description(
      'Show for each upstream the learned distribution of finality time and the requests per submission.',
    )
    .option('--json', 'print JSON, as returned by the HTTP interface')
    .addHelpText('after', "\nExample:\n  dawatch pacing --json | jq '.upstreams[].last_hour'")
    .action(async (options: ConnectOptions & { json?: boolean }) => {
      const pacing = await connect(options).pacing();
      const text = () =>
        pacing.upstreams
          .map((upstream) => paragraph(upstream, Date.parse(pacing.at)))
          .join('\n\n\n');
      process.stdout.write(`${options.json ? toJson(pacing) : text()}\n`);
    });
}

function paragraph(pacing: UpstreamPacing, now: number): string {
  const { upstream, state, reason, paused_until, tracked, budget } = pacing;
  const facts: [string, string][] = [
    [
      'state',
      `${state}${paused_until === null ? '' : ` until ${paused_until}`}, ${tracked} tracked${reason === null ? '' : `: ${reason}`}`,
    ],
    ['mode', `${pacing.mode}: ${MODES[pacing.mode] ?? '?'}`],
    ...(pacing.chain ? chainFacts(pacing.chain, now) : []),
    ['slots', slotText(pacing, now)],
    [
      'senders',
      pacing.senders === null
        ? 'the upstream sends in parallel'
        : `${pacing.senders}, each sending serially`,
    ],
    ['finality', finalityText(pacing)],
    ['polls', pollsText(pacing)],
    ['last hour', lastHourText(pacing)],
    [
      'budget',
      `${budget.used} of ${budget.requests} requests per ${seconds(budget.per_ms)} used, ${budget.in_flight} of ${budget.concurrency} in flight`,
    ],
    ['next', nextText(pacing, now)],
  ];
  return [
    escapeText(upstream),
    ...facts.map(([name, text]) => `  ${name.padEnd(10)}  ${escapeText(text)}`),
  ].join('\n');
}

function chainFacts(
  { state, name, nodes, ...head }: NonNullable<UpstreamPacing['chain']>,
  now: number,
): [string, string][] {
  const blockText = ({ block_number, block_at }: Pick<typeof head, 'block_number' | 'block_at'>) =>
    block_number === null || block_at === null
      ? 'no finalized block yet'
      : `block ${block_number} final since ${seconds(Math.max(0, now - Date.parse(block_at)))}`;
  return [
    ['chain', `${state}, ${name ?? 'unknown chain'}, ${blockText(head)}`],
    ...nodes.map(({ host, state, problem, ...head }): [string, string] => [
      'node',
      `${host} ${state}, ${blockText(head)}${problem === null ? '' : `: ${problem}`}`,
    ]),
  ];
}

function slotText({ slot }: UpstreamPacing, now: number): string {
  if (!slot) return 'not known';
  const empty = `one every ${seconds(slot.period_ms)}, ${percent(slot.empty_share)} of them empty`;
  if (slot.next_event_at === null) return empty;
  return `${empty}; the next group becomes final in about ${seconds(Math.max(0, Date.parse(slot.next_event_at) - now))}`;
}

function finalityText({ curve, observed }: UpstreamPacing): string {
  const learned =
    observed === 0
      ? 'initial assumption, nothing learned yet'
      : `learned from ${plural(observed, 'submission')}`;
  const quantiles = QUANTILES.flatMap((share) => {
    const ms = quantileMs(curve, share);
    return ms === null ? [] : [`${percent(share)} within ${roughly(ms)}`];
  });
  return quantiles.length === 0 ? 'not known' : `${quantiles.join(', ')} (${learned})`;
}

function pollsText({ polls_ms: polls }: UpstreamPacing): string {
  if (polls.length === 0) return 'not known';
  const more = polls.length > MAX_POLLS ? ' …' : '';
  return `after ${polls.slice(0, MAX_POLLS).map(roughly).join(', ')}${more} until it is final; observations of other submissions can reschedule them`;
}

function lastHourText({ last_hour: { finalized, ...mean } }: UpstreamPacing): string {
  const { requests_per_submission: requests, mean_lag_s: lagS } = mean;
  if (requests === null) return `too few submissions: ${finalized} became final`;
  const lag = lagS === null ? 'mean lag not known' : `mean lag ${lagS.toFixed(2)} s`;
  return `${requests.toFixed(2)} requests per submission, ${lag}, of ${finalized} that became final`;
}

function nextText({ next }: UpstreamPacing, now: number): string {
  if (!next) return 'nothing to poll';
  const inMs = next.at === null ? null : Date.parse(next.at) - now;
  const when =
    inMs === null ? 'after the next response' : inMs <= 0 ? 'now' : `in ${seconds(inMs)}`;
  const held = next.held_by === null ? '' : `; ${HELD_BY[next.held_by] ?? next.held_by}`;
  return `${next.submission_id} ${when}: ${next.reason}, ${REASONS[next.reason] ?? '?'}${held}`;
}

function seconds(ms = 0): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
