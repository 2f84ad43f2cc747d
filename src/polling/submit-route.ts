import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { type Authenticator, credentialNumber, mayContinue, sendEnded } from '../access/access.ts';
import { operations, problemResponses, sendProblem, setRetryAfter } from '../http/problems.ts';
import { goneSignal, logOf } from '../http/request-log.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { LedgerError } from '../ledger/errors.ts';
import { retryWhileLocked } from '../ledger/locked.ts';
import type { PauseRequest } from '../lib/retry-after.ts';
import type { Tracker, TrackRequestResult } from '../submissions/tracker.ts';
import type { Admission } from '../submissions/tracking-queue.ts';
import { submittedHashOf } from './data-hash.ts';
import type { OnDemandFailure } from './on-demand-polls.ts';
import {
  SUBMIT_PATHS,
  type SubmitPath,
  type SubmitResponse,
  type SubmitResult,
  type UpstreamSubmitter,
} from './upstream-submit.ts';
import type { Watcher } from './watcher.ts';

/**
 * Headers that describe the data. Credentials are not forwarded, because those of callers are for
 * dawatch.
 */
const FORWARDED = ['content-type', 'accept'] as const;
const IDEMPOTENCY_KEY = 'idempotency-key';

function forwardedHeaders(
  { headers, caller }: FastifyRequest,
  keyedHash: SubmitDeps['keyedHash'],
): Record<string, string> {
  const forwarded: Record<string, string> = {};
  for (const name of FORWARDED) {
    const value = headers[name];
    if (typeof value === 'string') forwarded[name] = value;
  }
  const key = headers[IDEMPOTENCY_KEY];
  if (key) forwarded[IDEMPOTENCY_KEY] = uuidOf(keyedHash(`${credentialNumber(caller)}\n${key}`));
  return forwarded;
}

/**
 * Returns a UUID of version 8 with the first bits of a hash. All callers share the upstream's key,
 * so the same Idempotency-Key of two callers must differ there.
 */
function uuidOf(hash: string): string {
  return hash.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-a$4-$5');
}

/**
 * Returns the query of a URL with its question mark, without dawatch's own parameter `upstream`;
 * empty if nothing is left. Characters that a query cannot contain are percent-encoded.
 */
function forwardedQuery(url: string): string {
  const at = url.indexOf('?');
  const parameters = at < 0 ? [] : url.slice(at + 1).split('&');
  const query = parameters
    .filter((parameter) => parameter !== '' && !new URLSearchParams(parameter).has('upstream'))
    .join('&')
    .replace(/[^\w\-.~!$&'()*+,;=:@/?%]/g, encodeURIComponent);
  return query === '' ? '' : `?${query}`;
}

/** The upstreams that data may be submitted to, by name. */
export type Submitters = ReadonlyMap<string, Submitter>;
type Submitter = { submitter: UpstreamSubmitter; maxBytes: number };

type SubmitDeps = {
  submitters: Submitters;
  tracker: Tracker;
  watcher: Watcher;
  admission: Admission;
  authenticator: Pick<Authenticator, 'currentCaller'>;
  /** Returns a hash that differs between ledgers. */
  keyedHash: (text: string) => string;
};

const DESCRIPTION =
  'The body is forwarded to the upstream unchanged, once. The returned submission is tracked on disk before the response is sent, which is ' +
  "the upstream's own. Failures are problem documents with an `error` member; `submitted` is `no`, `unclear` or `yes`. Requires `upstreams.….submit`.";

const describeSubmit = (summary: string, contentType: string, example: unknown) => ({
  summary,
  description: DESCRIPTION,
  consumes: [contentType],
  querystring: z.looseObject({
    upstream: z
      .string()
      .max(32)
      .optional()
      .describe('Name of a configured upstream; "default" if absent'),
  }),
  body: z
    .unknown()
    .describe('The data, in the form that the upstream expects')
    .meta({ examples: [example] }),
  response: {
    200: z
      .looseObject({ submission_id: z.string() })
      .describe("The upstream's own response, unchanged")
      .meta({ examples: [{ submission_id: '6df2c1ce-b11a-4828-b2a6-62bf5b7cb325' }] }),
    ...problemResponses(408, 413, 415, 500, 502, 504, 507),
  },
});

const OPERATIONS = operations('submissions', {
  submitData: describeSubmit('Submit data to the upstream, and track it', 'application/json', {
    data: 'some data',
  }),
  submitRawData: describeSubmit(
    'Submit raw data to the upstream, and track it',
    'application/octet-stream',
    'some data',
  ),
});
const SCHEMAS: Record<SubmitPath, typeof OPERATIONS.submitData> = {
  '/v1/submit_data': OPERATIONS.submitData,
  '/v1/submit_raw_data': OPERATIONS.submitRawData,
};

/** Registers the upstream's endpoints that accept data, if they are enabled for an upstream. */
export async function registerSubmit(app: TypedServer, deps: SubmitDeps): Promise<void> {
  const { submitters, admission } = deps;
  if (submitters.size === 0) return;
  const bodyLimit = Math.max(...[...submitters.values()].map(({ maxBytes }) => maxBytes));
  await app.register(async (scope: TypedServer) => {
    scope.removeAllContentTypeParsers();
    scope.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) =>
      done(null, body),
    );
    for (const path of SUBMIT_PATHS)
      scope.post(
        path,
        {
          bodyLimit,
          config: { hasErrorMember: true, submitsData: true, scopes: ['submissions:write'] },
          preParsing: admission.admitBody,
          schema: SCHEMAS[path],
        },
        (request, reply) =>
          submit(deps, { path, request, reply }).finally(request.bodyDone) as never,
      );
  });
}

type Submit = {
  path: SubmitPath;
  request: FastifyRequest;
  reply: FastifyReply;
};

async function submit(deps: SubmitDeps, call: Submit): Promise<FastifyReply> {
  const { submitters, watcher } = deps;
  const { request, reply } = call;
  const { upstream = 'default' } = request.query as { upstream?: string };
  const target = submitters.get(upstream);
  if (!target)
    return refused(
      reply,
      400,
      `query upstream: no data can be submitted to ${JSON.stringify(upstream)}`,
    );
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  if (body.length > target.maxBytes)
    return refused(
      reply,
      413,
      `the body must have at most ${target.maxBytes} bytes for the upstream ${upstream}`,
    );
  if (!watcher.health().ledgerWritable)
    return refused(reply, 503, 'the ledger is unavailable: nothing was submitted', LEDGER_RETRY_MS);
  return forward(deps, { ...call, upstream, target, body });
}

async function forward(
  { tracker, watcher, authenticator, keyedHash }: SubmitDeps,
  call: Submit & { upstream: string; target: Submitter; body: Buffer },
): Promise<FastifyReply> {
  const { path, request, reply, upstream, target, body } = call;
  // A disconnected client would not receive the id.
  const reserved = await watcher.reserve(upstream, goneSignal(reply));
  if (reserved.kind === 'failed')
    return refused(
      reply,
      503,
      `${NOT_RESERVED[reserved.reason]}: nothing was submitted`,
      reserved.retryAfterMs,
    );
  if (reserved.kind === 'cancelled')
    return refused(reply, 408, 'the client disconnected: nothing was submitted');
  let submittedHash: string | undefined;
  let result: (SubmitResult & { pause?: PauseRequest | undefined }) | undefined;
  try {
    // Its credential may have ended while the data waited for the request budget.
    if (!mayContinue(request, authenticator)) return sendEnded(reply);
    request.isDataSent = true;
    const forwarded = {
      path,
      query: forwardedQuery(request.url),
      headers: forwardedHeaders(request, keyedHash),
      body,
    };
    const hashed = submittedHashOf(path, body);
    result = await target.submitter.submit(forwarded);
    submittedHash = await hashed;
  } finally {
    watcher.release(upstream, { pause: result?.pause, isGood: isGood(result) });
  }
  if (result.kind !== 'accepted') return sendNotAccepted(request, reply, upstream, result);

  // From here on, a disconnect of the client no longer prevents the submit.
  const { submissionId, response } = result;
  const failure = await track(
    tracker,
    { submissionId, upstream, submittedHash },
    credentialNumber(request.caller),
  );
  if (failure) {
    const { status, reason, error } = failure;
    logOf(request).error(
      { submission_id: submissionId, upstream, reason, err: error },
      'submit.not_tracked',
    );
    const detail = `the upstream has accepted the data as ${submissionId}, but it is not tracked: ${reason}. Track this id; do not submit the data again`;
    return sendProblem(reply, { status, detail, submitted: 'yes', submissionId });
  }
  logOf(request).debug({ submission_id: submissionId, upstream }, 'submit.accepted');
  return sendUnchanged(reply, response);
}

/** Whether the upstream works, by the response to a submit; undefined: it shows neither. */
function isGood(result: SubmitResult | undefined): boolean | undefined {
  // A refusal is about the data or the rate of requests.
  return !result || result.kind === 'refused' ? undefined : result.kind === 'accepted';
}

const LEDGER_RETRY_MS = 5_000;
const NOT_RESERVED: Record<OnDemandFailure, string> = {
  budget_exhausted: 'the request budget of the upstream is exhausted',
  ledger_unavailable: 'the ledger cannot be written at the moment',
  not_polling: 'this server is starting or stopping',
  upstream_down: 'the upstream is down',
  no_response: 'the upstream did not respond',
};

/** Commits the tracking. Returns the reason of a failure; undefined if it is committed. */
async function track(
  tracker: Tracker,
  submission: {
    submissionId: string;
    upstream: string;
    submittedHash: string | undefined;
  },
  credential: number | null,
): Promise<{ status: 500 | 507; reason: string; error?: unknown } | undefined> {
  try {
    // The upstream has just accepted this id, so a submission that has ended is tracked again.
    const { submissionId: submission_id, submittedHash, ...options } = submission;
    const request = { submission_id, ...options, retrack: true };
    const tracked = await retryWhileLocked(() => tracker.track(request, credential, submittedHash));
    if (tracked.kind === 'tracked') return undefined;
    return { status: 500, reason: notTrackedReason(tracked) };
  } catch (error) {
    const isFull = error instanceof LedgerError && error.problem === 'full';
    return {
      status: isFull ? 507 : 500,
      reason: isFull ? 'the disk is full' : 'the ledger is unavailable',
      error,
    };
  }
}

function notTrackedReason(result: Exclude<TrackRequestResult, { kind: 'tracked' }>): string {
  switch (result.kind) {
    case 'invalid':
      return result.reason;
    case 'conflict':
      return `it ${result.reason}`;
    default:
      return result satisfies never;
  }
}

/** The upstream has accepted nothing. */
function refused(
  reply: FastifyReply,
  status: 400 | 408 | 413 | 502 | 503,
  detail: string,
  retryAfterMs?: number,
) {
  setRetryAfter(reply, retryAfterMs ?? null);
  return sendProblem(reply, { status, detail, submitted: 'no' });
}

function sendNotAccepted(
  request: FastifyRequest,
  reply: FastifyReply,
  upstream: string,
  result: Exclude<SubmitResult, { kind: 'accepted' }>,
): FastifyReply {
  switch (result.kind) {
    case 'refused':
      return sendUnchanged(reply, result.response);
    case 'unauthorized':
      return refused(
        reply,
        502,
        'the upstream refuses the credentials of this server: nothing was submitted',
      );
    case 'blocked':
      return refused(
        reply,
        502,
        `a proxy or firewall refused the request with HTTP ${result.httpStatus}: nothing was submitted`,
      );
    case 'not_sent':
      return refused(reply, 502, 'the upstream cannot be reached: nothing was submitted');
    case 'unclear': {
      logOf(request).warn({ upstream, reason: result.detail }, 'submit.unclear');
      const what = result.isTimeout
        ? 'the upstream did not respond in time'
        : `no usable response (${result.detail}${result.quote})`;
      const detail = `${what}: it is unclear whether the upstream has accepted the data, and it was not submitted again`;
      return sendProblem(reply, {
        status: result.isTimeout ? 504 : 502,
        detail,
        submitted: 'unclear',
      });
    }
    default:
      return result satisfies never;
  }
}

function sendUnchanged(
  reply: FastifyReply,
  { httpStatus, headers, body }: SubmitResponse,
): FastifyReply {
  return reply.code(httpStatus).type('text/plain; charset=utf-8').headers(headers).send(body);
}

/**
 * Explains a 404 of the two paths, which exist only if an upstream enables them; empty for every
 * other path.
 */
export function submitHint(path: string): string {
  const isSubmit = SUBMIT_PATHS.some((name) => name === path);
  return isSubmit ? ': upstreams.<name>.submit.enabled is false for each upstream' : '';
}
