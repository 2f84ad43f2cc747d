import { type Finding, type Level, worstLevel } from '../../doctor/finding.ts';
import { escapeText } from '../../domain/text.ts';
import type { Paint } from './colors.ts';
import { toJson } from './json.ts';

const COLOURS = { ok: 'green', warning: 'yellow', problem: 'red' } as const satisfies Record<Level, string>;
const MAX_CHARS = 1_000;

/** Returns a line per finding, followed by its action if it has one, and a summary line. */
export function doctorText(findings: readonly Finding[], paint: Paint): string {
  const width = Math.max(0, ...findings.map(({ name }) => name.length));
  const indent = ' '.repeat('problem  '.length + width + 2);
  const lines = findings.flatMap(({ name, status, message, action }) => [
    `${paint(COLOURS[status], status.padEnd(7))}  ${name.padEnd(width)}  ${escapeText(message, MAX_CHARS)}`,
    ...(action === null ? [] : [`${indent}${paint('bold', 'do:')} ${escapeText(action, MAX_CHARS)}`]),
  ]);
  return `${[...lines, '', summaryOf(findings, paint)].join('\n')}\n`;
}

function summaryOf(findings: readonly Finding[], paint: Paint): string {
  const worst = worstLevel(findings);
  const count = (level: Level) => findings.filter(({ status }) => status === level).length;
  const counted = (level: Level) => `${count(level)} ${level}${count(level) === 1 ? '' : 's'}`;
  if (worst === 'ok') return paint(COLOURS.ok, 'no problems found');
  return paint(COLOURS[worst], `${counted('problem')}, ${counted('warning')}`);
}

export function doctorJson(findings: readonly Finding[]): string {
  return `${toJson({ status: worstLevel(findings), checks: findings }, 2)}\n`;
}
