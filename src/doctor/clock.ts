import type { UpstreamResponse } from '../domain/classify.ts';
import { type Finding, ok, problem, warning } from './finding.ts';

const WARNING_S = 5;
const PROBLEM_S = 60;

/** Compares the clock of this machine with the Date header of a response, which has a resolution of one second. */
export function checkClock(name: string, response: UpstreamResponse, sentAt: number, receivedAt: number): Finding[] {
  const about = `clock.${name}`;
  const date = response.kind === 'response' && response.date !== null ? Date.parse(response.date) : Number.NaN;
  if (Number.isNaN(date)) return [];
  // The server set the date at any time between request and response, truncated to a second.
  const aheadMs = sentAt - (date + 999);
  const behindMs = date - receivedAt;
  const offS = Math.max(0, aheadMs, behindMs) / 1_000;
  if (offS <= WARNING_S) return [ok(about, `within ${WARNING_S} s of the clock of ${name}`)];
  const message = `this clock is ${offS.toFixed(0)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of ${name}`;
  const action =
    'synchronize this machine with a time server (timedatectl set-ntp true); if it is synchronized, notify the operator of the upstream';
  return [offS > PROBLEM_S ? problem(about, message, action) : warning(about, message, action)];
}
