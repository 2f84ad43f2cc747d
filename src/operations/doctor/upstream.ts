import { randomUUID } from 'node:crypto';
import { lookup } from 'node:dns';
import { UpstreamUsers } from '../../access/users.ts';
import type { ConnectionCause } from '../../lib/connection-error.ts';
import type { HttpResult } from '../../lib/http-call.ts';
import { UpstreamClient } from '../../polling/upstream-client.ts';
import { type Classification, classify } from '../../submissions/classify.ts';
import type { UpstreamConfig } from '../config/schema.ts';
import { VERSION } from '../version.ts';
import { type Finding, ok, problem, settingName, warning } from './finding.ts';
import { reach } from './receivers.ts';

/**
 * Checks an upstream by polling an id that does not exist: "not found" shows that it works and
 * accepts the key.
 */
export async function checkUpstream(
  name: string,
  upstream: UpstreamConfig & { url: string },
  limitMs: number,
): Promise<Finding[]> {
  const about = `upstream.${name}`;
  const { host } = new URL(upstream.url);
  const reached = await reach(upstream.url, { guard: undefined, timeoutMs: limitMs, lookup });
  if (reached.kind === 'not_reached')
    return [
      problem(about, `${host} is unreachable: ${reached.error}`, adviceOn(reached.cause, name)),
    ];

  const client = new UpstreamClient({
    url: upstream.url,
    apiKey: upstream.api_key,
    extraHeaders: upstream.headers,
    version: VERSION,
    connections: 1,
    timeoutMs: Math.min(limitMs, upstream.timeout_s * 1_000),
    // Marks responses without a Date header, which are not used to compare clocks.
    now: () => Number.NaN,
  });
  try {
    const submissionId = randomUUID();
    const sentAt = Date.now();
    const response = await client.getSubmissionInfo(submissionId);
    const classification = classify(submissionId, response);
    return [
      findingOf(classification, response, { about, host, name, upstream }),
      ...checkClock(name, response, sentAt, Date.now()),
    ];
  } finally {
    await client.close();
  }
}

type Polled = { about: string; host: string; name: string; upstream: UpstreamConfig };

function findingOf(
  classification: Classification,
  response: HttpResult,
  { about, host, name, upstream }: Polled,
): Finding {
  const key = settingName(`upstreams.${name}.api_key`);
  const url = settingName(`upstreams.${name}.url`);
  switch (classification.kind) {
    case 'not_found':
    case 'pending':
    case 'finalized':
    case 'error':
      return upstream.api_key === undefined
        ? warning(about, `${host} works without a key`, `set ${key} if the upstream requires one`)
        : ok(about, `${host} works and accepts the key`);
    case 'rejected':
      return warning(
        about,
        `${host} works, but refuses the test id: ${classification.error}`,
        'verify that the upstream accepts UUIDs',
      );
    case 'unauthorized':
      return upstream.api_key === undefined
        ? problem(about, `${host} requires a key, and none is set`, `set ${key}`)
        : problem(about, `${host} refuses the key`, `set ${key} to a valid key`);
    case 'throttled':
      return warning(
        about,
        `${host} is rate limiting, so the key was not tested`,
        `try again later; if it persists, lower upstreams.${name}.budget: other clients may share the limit`,
      );
    case 'unavailable':
      return unavailable(classification, response, { about, host, url });
    default:
      return classification satisfies never;
  }
}

function unavailable(
  { reason, error }: Extract<Classification, { kind: 'unavailable' }>,
  response: HttpResult,
  { about, host, url }: { about: string; host: string; url: string },
): Finding {
  const isBase = `verify that ${url} is the base address of the upstream`;
  const wait = 'contact the operator of the upstream; dawatch resumes by itself once it works';
  const found = (what: string, advice: string) => problem(about, `${host} ${what}`, advice);
  if (response.kind === 'failure')
    return found(
      `accepts connections, but does not respond: ${error}`,
      reason === 'timeout' ? wait : isBase,
    );
  const { httpStatus, body } = response;
  if (httpStatus >= 300 && httpStatus < 400)
    return found(
      `redirects (HTTP ${httpStatus}), which is not followed, because the key would be disclosed`,
      `set ${url} to the target of the redirect`,
    );
  if (httpStatus === 401 || httpStatus === 403)
    return found(
      `was not reached: ${error}`,
      'the key was not tested; make the proxy or firewall permit requests of dawatch, which have the User-Agent dawatch/<version>',
    );
  if (body.trimStart().startsWith('<'))
    return found(
      `responds with a web page (HTTP ${httpStatus}): a proxy, or another service`,
      isBase,
    );
  if (reason === 'malformed')
    return found(`does not respond like the upstream service: ${error}`, isBase);
  if (httpStatus === 404)
    return found('has no submission endpoints at this address (HTTP 404)', isBase);
  return found(`does not work: ${error}`, wait);
}

function adviceOn(cause: ConnectionCause, name: string): string {
  const url = settingName(`upstreams.${name}.url`);
  switch (cause) {
    case 'unknown_name':
    case 'dns':
      return `verify the host name in ${url}, and the name servers of this machine`;
    case 'tls':
      return 'the upstream needs a certificate for this name that this machine trusts; NODE_EXTRA_CA_CERTS adds certificate authorities';
    default:
      return `verify ${url}, that the upstream runs, and that firewalls permit the connection`;
  }
}

const WARNING_S = 5;
const PROBLEM_S = 60;

/**
 * Compares the clock of this machine with the Date header of a response, which has a resolution of
 * one second.
 */
function checkClock(
  name: string,
  response: HttpResult,
  sentAt: number,
  receivedAt: number,
): Finding[] {
  const about = `clock.${name}`;
  const date =
    response.kind === 'response' && response.date !== null ? Date.parse(response.date) : Number.NaN;
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

/** A user that cannot exist: the domain .invalid is reserved. */
const NONEXISTENT_USER = { name: 'dawatch doctor', email: 'doctor@dawatch.invalid' };

/** Checks the token for user lookups by looking up a user that does not exist. */
export async function checkBearer(
  upstream: UpstreamConfig & { url: string; bearer: string },
  limitMs: number,
): Promise<Finding[]> {
  const about = 'users.default';
  const bearer = settingName('upstreams.default.bearer');
  const timeoutMs = Math.min(limitMs, upstream.timeout_s * 1_000);
  const client = new UpstreamClient({
    url: upstream.url,
    extraHeaders: upstream.headers,
    version: VERSION,
    connections: 1,
    timeoutMs,
    now: Date.now,
  });
  try {
    const users = new UpstreamUsers({
      client,
      bearer: upstream.bearer,
      getPath: upstream.users.get_path,
      listPath: upstream.users.list_path,
      parameters: upstream.users.parameters,
    });
    const { kind, ...lookup } = await users.getUser(NONEXISTENT_USER);
    if (kind === 'found' || kind === 'not_found')
      return [ok(about, 'user lookups work, and the token is accepted')];
    if (kind === 'unauthorized' || kind === 'forbidden')
      return [
        problem(
          about,
          'the upstream refuses the token for user lookups',
          `set ${bearer} to a valid token`,
        ),
      ];
    const detail = 'detail' in lookup ? lookup.detail : 'too many concurrent lookups';
    const advice = 'verify the paths and parameters in upstreams.default.users';
    return [warning(about, `user lookups do not work: ${detail}`, advice)];
  } finally {
    await client.close();
  }
}
