import type { Command } from 'commander';
import type { UpstreamPacing } from '../client/client.ts';
import { printable } from '../monitor/printable.ts';
import { type ConnectOptions, connect, withServer } from './connect.ts';

const MODES: Record<string, string> = {
  cohorts: 'few are asked when a block becomes final, and the others when one of those is',
  clock_only: 'each is asked by itself, at blocks: the order of tracking tells nothing',
  by_age: 'each is asked by its age: the clock is not known',
};
const REASONS: Record<string, string> = {
  scout: 'among the first in line, asked at the next block',
  sweep: 'its neighbour was found final',
  alone: 'the order tells nothing about it, so it is asked by itself, at blocks',
  doubt: 'asked between two blocks, to see whether it is they that make final',
  net: 'left alone for the longest time allowed',
  age: 'by its age, because the clock is not known',
  recheck: 'it is final, and looked at once more',
  probe: 'the upstream is out, and this finds out whether it is back',
};
const HELD_BY: Record<string, string> = {
  budget: 'it waits for a place in the budget',
  pause: 'the upstream wants no requests until then',
};

export function addPacing(program: Command): void {
  withServer(program.command('pacing'))
    .description('Show what is learned about each upstream, and why the next request goes where it goes.')
    .option('--json', 'print JSON, as the HTTP interface answers')
    .addHelpText('after', "\nExample:\n  dawatch pacing --json | jq '.upstreams[].clock'")
    .action(async (options: ConnectOptions & { json?: boolean }) => {
      const pacing = await connect(options).pacing();
      const text = () => pacing.upstreams.map((upstream) => paragraph(upstream, Date.parse(pacing.at))).join('\n\n');
      process.stdout.write(`${options.json ? JSON.stringify(pacing) : text()}\n`);
    });
}

function paragraph(pacing: UpstreamPacing, now: number): string {
  const { upstream, state, tracked, in_line, scouts, disorder, budget } = pacing;
  const facts: [string, string][] = [
    ['state', `${state}, ${tracked} tracked`],
    ['mode', `${pacing.mode}: ${MODES[pacing.mode] ?? '?'}`],
    ['clock', clockText(pacing, now)],
    ['time to finality', pacing.least_age_ms === null ? 'not known' : `${seconds(pacing.least_age_ms)} at least`],
    ['groups', pacing.group_size === 0 ? 'not known' : `${pacing.group_size.toFixed(1)} become final at once`],
    ['line', `${in_line} in order of tracking, ${scouts} of them scouts; ${percent(disorder)} are overtaken`],
    [
      'budget',
      `${budget.used} of ${budget.requests} requests per ${seconds(budget.per_ms)} taken, ${budget.in_flight} of ${budget.concurrency} under way`,
    ],
    ['next', nextText(pacing, now)],
  ];
  return [printable(upstream), ...facts.map(([name, text]) => `  ${name.padEnd(16)}  ${printable(text)}`)].join('\n');
}

function clockText({ clock }: UpstreamPacing, now: number): string {
  if (!clock) return 'not known';
  const [from, until] = [clock.next_from, clock.next_until].map((at) => Math.max(0, Date.parse(at) - now));
  return `a block becomes final every ${seconds(clock.period_ms)}, the next in ${seconds(from)} to ${seconds(until)}`;
}

function nextText({ next }: UpstreamPacing, now: number): string {
  if (!next) return 'nothing to ask about';
  const inMs = next.at === null ? null : Date.parse(next.at) - now;
  const when = inMs === null ? 'after the next answer' : inMs <= 0 ? 'now' : `in ${seconds(inMs)}`;
  const held = next.held_by === null ? '' : `; ${HELD_BY[next.held_by] ?? next.held_by}`;
  return `${next.submission_id} ${when}: ${next.reason}, ${REASONS[next.reason] ?? '?'}${held}`;
}

function seconds(ms = 0): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
