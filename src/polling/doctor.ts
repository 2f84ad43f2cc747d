import { randomUUID } from 'node:crypto';
import { systemClock } from '../lib/clock.ts';
import type { HttpResult } from '../lib/http-call.ts';
import {
  type Check,
  type Finding,
  ok,
  problem,
  settingName,
  warning,
} from '../operations/doctor/finding.ts';
import { VERSION } from '../operations/version.ts';
import { type Classification, classify } from '../submissions/classify.ts';
import { checkNodes } from './chain/doctor.ts';
import type { UpstreamConfig } from './settings.ts';
import { UpstreamClient } from './upstreams.ts';

type Upstream = UpstreamConfig & { url: string };

export function upstreamChecks(
  name: string,
  upstream: Upstream,
  ledger: { genesisHash: string | null; file: string },
  limitMs: number,
): Check[] {
  return [
    { name: `upstream.${name}`, run: () => checkUpstream(name, upstream, limitMs) },
    {
      name: `chain.${name}`,
      run: () => checkNodes(name, upstream.chain, { ...ledger, limitMs }),
    },
  ];
}

/** Polls an id that does not exist: "not found" shows that the upstream accepts the key. */
async function checkUpstream(
  name: string,
  upstream: Upstream,
  limitMs: number,
): Promise<Finding[]> {
  const client = new UpstreamClient({
    url: upstream.url,
    apiKey: upstream.api_key,
    extraHeaders: upstream.headers,
    version: VERSION,
    timeoutMs: Math.min(limitMs, upstream.timeout_s * 1_000),
    // Marks responses without a Date header, which are not used to compare clocks.
    clock: {
      now: () => Number.NaN,
      elapsed: () => systemClock.elapsed(),
      after: (delayMs, run) => systemClock.after(delayMs, run),
    },
  });
  try {
    const submissionId = randomUUID();
    const sentAt = Date.now();
    const response = await client.getSubmissionInfo(submissionId);
    const answer = classify(submissionId, response);
    return [findingOf(name, upstream, answer), ...checkClock(name, response, sentAt)];
  } finally {
    await client.close();
  }
}

function findingOf(name: string, { url, api_key }: Upstream, answer: Classification): Finding {
  const about = `upstream.${name}`;
  const { host } = new URL(url);
  const key = settingName(`upstreams.${name}.api_key`);
  switch (answer.kind) {
    case 'not_found':
    case 'pending':
    case 'finalized':
    case 'error':
      return api_key === undefined
        ? warning(about, `${host} works without a key`, `set ${key} if the upstream requires one`)
        : ok(about, `${host} works and accepts the key`);
    case 'rejected':
      return warning(
        about,
        `${host} works, but refuses the test id: ${answer.error}`,
        'verify that the upstream accepts UUIDs',
      );
    case 'unauthorized':
      return problem(
        about,
        `${host} ${api_key === undefined ? 'requires a key, and none is set' : 'refuses the key'}`,
        `set ${key} to a valid key`,
      );
    case 'throttled':
      return warning(
        about,
        `${host} is rate limiting, so the key was not tested`,
        `try again later; if it persists, lower upstreams.${name}.budget: other clients may share the limit`,
      );
    case 'unavailable':
      return problem(
        about,
        `${host} does not respond like the upstream service: ${answer.error}`,
        `verify ${settingName(`upstreams.${name}.url`)}, that the upstream runs, and that firewalls and proxies permit the request`,
      );
    default:
      return answer satisfies never;
  }
}

const CLOCK_WARNING_S = 5;
const CLOCK_PROBLEM_S = 60;

/** Compares this machine's clock with the Date header, which has a resolution of one second. */
function checkClock(name: string, response: HttpResult, sentAt: number): Finding[] {
  const date =
    response.kind === 'response' && response.date !== null ? Date.parse(response.date) : Number.NaN;
  if (Number.isNaN(date)) return [];
  // The server set the date at any time between request and response, truncated to a second.
  const aheadMs = sentAt - (date + 999);
  const offS = Math.max(0, aheadMs, date - Date.now()) / 1_000;
  if (offS <= CLOCK_WARNING_S) return [];
  const message = `this clock is ${offS.toFixed(0)} s ${aheadMs > 0 ? 'ahead of' : 'behind'} the clock of ${name}`;
  const action = 'synchronize this machine with a time server (timedatectl set-ntp true)';
  return [(offS > CLOCK_PROBLEM_S ? problem : warning)(`clock.${name}`, message, action)];
}
