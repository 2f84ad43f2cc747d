import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns';
import type { UpstreamConfig } from '../config/schema.ts';
import { type Classification, classify, type UpstreamResponse } from '../domain/classify.ts';
import { createAddressGuard } from '../notify/transport/address-guard.ts';
import type { ConnectionCause } from '../notify/transport/connection-error.ts';
import { reach } from '../notify/transport/reach.ts';
import { UpstreamClient } from '../upstream/client.ts';
import { checkClock } from './clock.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { settingName } from './settings.ts';

type Examined = { name: string; upstream: UpstreamConfig & { url: string }; limitMs: number; signal: AbortSignal };

/** Asks about a submission that nobody has: whoever does not find it is there, and has taken the key. */
export async function checkUpstream({ name, upstream, limitMs, signal }: Examined): Promise<Finding[]> {
  const about = `upstream.${name}`;
  const { host } = new URL(upstream.url);
  const guard = createAddressGuard({ allow: ['0.0.0.0/0', '::/0'] });
  const reached = await reach(upstream.url, { guard, timeoutMs: limitMs, signal, lookup });
  if (reached.kind === 'not_reached')
    return [problem(about, `${host} is not reached: ${reached.error}`, adviceOn(reached.cause, name))];

  const client = new UpstreamClient({
    url: upstream.url,
    apiKey: upstream.api_key,
    connections: 1,
    timeoutMs: Math.min(limitMs, upstream.timeout_s * 1_000),
    // For an answer without a Date header, which says nothing about clocks.
    now: () => Number.NaN,
  });
  const close = () => void client.close();
  signal.addEventListener('abort', close, { once: true });
  try {
    const submissionId = randomUUID();
    const askedAt = Date.now();
    const answer = await client.getSubmissionInfo(submissionId);
    const verdict = classify(submissionId, answer);
    return [judge(verdict, answer, { about, host, name, upstream }), ...checkClock(name, answer, askedAt, Date.now())];
  } finally {
    signal.removeEventListener('abort', close);
    await client.close();
  }
}

type Asked = { about: string; host: string; name: string; upstream: UpstreamConfig };

function judge(verdict: Classification, answer: UpstreamResponse, { about, host, name, upstream }: Asked): Finding {
  const key = settingName(`upstreams.${name}.api_key`);
  const url = settingName(`upstreams.${name}.url`);
  switch (verdict.kind) {
    case 'not_found':
    case 'pending':
    case 'finalized':
    case 'error':
      return upstream.api_key === undefined
        ? warning(about, `${host} answers, without a key`, `set ${key} if it should have one`)
        : ok(about, `${host} answers, and takes the key`);
    case 'rejected':
      return warning(
        about,
        `${host} answers, but refuses the id of the test: ${verdict.error}`,
        'see that it takes UUIDs',
      );
    case 'unauthorized':
      return upstream.api_key === undefined
        ? problem(about, `${host} wants a key, and none is set`, `set ${key}`)
        : problem(about, `${host} refuses the key`, `set ${key} to one that is valid there`);
    case 'throttled':
      return warning(
        about,
        `${host} wants fewer requests now, so the key is not tested`,
        `look again later; if it stays so, lower upstreams.${name}.budget`,
      );
    case 'unavailable':
      return unavailable(verdict, answer, { about, host, url });
    default:
      return verdict satisfies never;
  }
}

type Unavailable = Extract<Classification, { kind: 'unavailable' }>;

function unavailable(
  { reason, error }: Unavailable,
  answer: UpstreamResponse,
  { about, host, url }: { about: string; host: string; url: string },
): Finding {
  if (answer.kind === 'failure') {
    const isSlow = reason === 'timeout';
    return isSlow
      ? problem(about, `${host} takes a connection, but gives ${error}`, 'ask those who run it; or try again later')
      : problem(
          about,
          `${host} takes a connection, but does not answer: ${error}`,
          `see that ${url} leads to the upstream`,
        );
  }
  const { httpStatus, body } = answer;
  if (httpStatus >= 300 && httpStatus < 400)
    return problem(
      about,
      `${host} redirects (HTTP ${httpStatus}), which is not followed: the key would go along`,
      `set ${url} to where it leads`,
    );
  if (body.trimStart().startsWith('<'))
    return problem(
      about,
      `${host} answers with a web page (HTTP ${httpStatus}): that is a proxy, or another service`,
      `see that ${url} is the base address of the upstream, and what stands between`,
    );
  if (reason === 'malformed')
    return problem(
      about,
      `${host} does not answer as the upstream does: ${error}`,
      `see that ${url} is its base address`,
    );
  if (httpStatus === 404)
    return problem(about, `${host} has no submissions there (HTTP 404)`, `see that ${url} is the base address`);
  return problem(
    about,
    `${host} does not work: ${error}`,
    'ask those who run it; dawatch goes on by itself once it is back',
  );
}

function adviceOn(cause: ConnectionCause, name: string): string {
  const url = settingName(`upstreams.${name}.url`);
  switch (cause) {
    case 'unknown_name':
      return `see that the name in ${url} is right`;
    case 'dns':
      return "see that this machine's nameservers work";
    case 'tls':
      return 'it must have a certificate for that name which this machine trusts; NODE_EXTRA_CA_CERTS names a file of further authorities';
    case 'timeout':
    case 'unreachable':
      return `see that ${url} is right, and that the network and its firewalls let this machine go there`;
    default:
      return `see that ${url} is right, and that it runs`;
  }
}
