import type { UpstreamResponse } from '../domain/classify.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const WARNING_S = 5;
const PROBLEM_S = 60;

/** How far this machine's clock is from an upstream's, by the Date of an answer: a whole second, made while we waited. */
export function checkClock(name: string, answer: UpstreamResponse, askedAt: number, answeredAt: number): Finding[] {
  const about = `clock.${name}`;
  const date = answer.kind === 'response' && answer.date !== null ? Date.parse(answer.date) : Number.NaN;
  if (Number.isNaN(date)) return [];
  // Anywhere within its second, and anywhere between question and answer, would be right.
  const aheadMs = askedAt - (date + 999);
  const behindMs = date - answeredAt;
  const offS = Math.max(0, aheadMs, behindMs) / 1_000;
  if (offS <= WARNING_S) return [ok(about, `within ${WARNING_S} s of the clock of ${name}`)];
  const message = `this clock is ${offS.toFixed(0)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of ${name}`;
  const action =
    'let this machine follow a time server (timedatectl set-ntp true); if it does, tell those who run the upstream';
  return [offS > PROBLEM_S ? problem(about, message, action) : warning(about, message, action)];
}
