import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  type Authenticator,
  actorOf,
  mayContinue,
  sendEnded,
  watchAccess,
} from '../access/access.ts';
import type { AuditTrail } from '../access/audit-store.ts';
import { operations, problemResponses, sendInvalidField, sendProblem } from '../http/problems.ts';
import { goneSignal, logOf, type TypedServer, wholeNumber } from '../http/typed-server.ts';
import type { Clock } from '../lib/clock.ts';
import { explorerLink } from './explorer-link.ts';
import { type Admission, type Intake, summaryOf } from './intake.ts';
import { originOf } from './option-changes.ts';
import type { SubmissionSearch } from './search.ts';
import { registerSubmissionSearch } from './search-route.ts';
import {
  canonicalId,
  canRetrack,
  MAX_HISTORY,
  Status,
  SUBMISSION_ID_PATTERN,
  type Submission,
} from './submission.ts';
import {
  submissionSchema,
  submissionWithHistorySchema,
  toHistoryBody,
  toSubmissionBody,
  toTime,
  trackedSchema,
} from './submission-body.ts';
import type { SubmissionQueries } from './submission-queries.ts';
import type { SubmissionStore } from './submission-store.ts';
import {
  BODY_LIMIT_BYTES,
  submissionIdSchema,
  toOptionsPatch,
  trackBodySchema,
  updateBodySchema,
} from './track-request.ts';

/** Below the 300 s after which common HTTP clients time out. */
const MAX_WAIT_S = 240;

const READ = { roles: ['service', 'operator'] } as const;
const WRITE = { roles: ['service'] } as const;

const params = z.object({ id: submissionIdSchema });
const OPERATIONS = operations('submissions', {
  trackSubmissions: {
    summary: 'Track one submission or many',
    description:
      'The body has one of submission_id, submission_ids and submissions. ' +
      'Idempotent: a submission that is already tracked is unchanged, unless it has ended and `retrack` is true. The response is sent once everything is on disk. ' +
      'A refused request stores nothing. ' +
      'When too many ids wait to be committed, it is 503 with Retry-After, and nothing of the request was accepted.',
    body: trackBodySchema,
    response: { 202: trackedSchema, ...problemResponses(409, 413, 415, 507) },
  },
  getSubmission: {
    summary: 'Get a submission with its history',
    params,
    response: { 200: submissionWithHistorySchema, ...problemResponses(404) },
  },
  waitForSubmission: {
    summary: 'Wait until a submission is final',
    description:
      'Responds as soon as the submission is final, or after timeout_s with its current state. A submission that was never polled is polled at once. Ends with 401 within 15 s after the ' +
      'credential has expired or was revoked, or its session has ended.',
    params,
    querystring: z.strictObject({
      timeout_s: wholeNumber({ min: 0, max: MAX_WAIT_S }).default('30'),
    }),
    response: { 200: submissionSchema, ...problemResponses(404) },
  },
  updateSubmission: {
    summary: 'Change options of a submission',
    description:
      'The history records the values before and after. Nothing is sent to subscribers: the next event shows the new values. ' +
      '409 for the time limits of a submission that has ended, and for one whose history has 1,000 entries.',
    params,
    body: updateBodySchema,
    response: { 200: submissionSchema, ...problemResponses(404, 409, 413, 415, 507) },
  },
  cancelSubmission: {
    summary: 'Stop tracking a submission',
    description: 'The submission becomes cancelled. A final submission is unchanged.',
    params,
    response: { 200: submissionSchema, ...problemResponses(404, 507) },
  },
});

type PollKnowledge = {
  /** When the submission is polled next, at the earliest, epoch ms; null: it is not polled. */
  nextPollAt(submission: Submission): number | null;
  /** Resolves when it is final, time is over, the server stops, or `signal` aborts. */
  waitUntilFinal(
    current: () => Submission | undefined,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<void>;
};

export function registerSubmissions(
  app: TypedServer,
  deps: {
    ledger: {
      audit: AuditTrail;
      search: SubmissionSearch;
      store: SubmissionStore;
      submissions: SubmissionQueries;
    };
    watcher: PollKnowledge;
    admission: Admission;
    intake: Intake;
    refusalOf: (url: string) => string | undefined;
    authenticator: Authenticator;
    clock: Clock;
    explorerOf: (upstream: string) => string | undefined;
  },
): void {
  const { ledger, watcher, admission, intake, authenticator, clock } = deps;
  const body = (submission: Submission, { caller }: FastifyRequest) => {
    const { callbackUrl: url } = submission;
    const callbackUrl = url === null || caller?.role === 'admin' ? url : originOf(url);
    const nextPollAt = watcher.nextPollAt(submission);
    const fields = toSubmissionBody(submission, callbackUrl);
    const template = deps.explorerOf(submission.upstream);
    const explorer_url = template && explorerLink(template, fields.data);
    return {
      ...fields,
      ...(explorer_url && { explorer_url }),
      next_poll_at: nextPollAt === null ? null : toTime(nextPollAt),
    };
  };
  const closing = new AbortController();
  app.addHook('preClose', async () => closing.abort());

  app.post(
    '/v1/submissions',
    {
      bodyLimit: BODY_LIMIT_BYTES,
      config: WRITE,
      preParsing: admission.admitBody,
      schema: OPERATIONS.trackSubmissions,
    },
    async (request, reply) => {
      const result = await intake.track(request.body);
      if (!result) return admission.shed('tracking', request, reply);
      switch (result.kind) {
        case 'invalid':
          return sendInvalidField(reply, result.field, result.reason);
        case 'conflict': {
          const { submissionId, field, reason } = result;
          const detail = `${submissionId} ${reason}; nothing was accepted`;
          const errors = [{ pointer: `/${field}`, detail: reason }];
          return sendProblem(reply, 409, detail, errors);
        }
        case 'tracked': {
          const { submissions } = result;
          const bodies = submissions.map(({ submission }) => body(submission, request));
          reply.code(202);
          return { ...summaryOf(submissions), submissions: bodies };
        }
        default:
          return result satisfies never;
      }
    },
  );

  registerSubmissionSearch(app, { ledger, shown: body });

  app.get(
    '/v1/submissions/:id',
    { config: READ, schema: OPERATIONS.getSubmission },
    async (request, reply) => {
      const { id } = request.params;
      const found = await ledger.submissions.readWithHistory(id);
      if (!found) return notTracked(reply, id);
      return {
        ...body(found.submission, request),
        history: found.history.map(toHistoryBody),
      };
    },
  );

  app.get(
    '/v1/submissions/:id/wait',
    { config: { ...READ, staysOpen: true }, schema: OPERATIONS.waitForSubmission },
    async (request, reply) => {
      const { id } = request.params;
      const mayRead = () => mayContinue(request, authenticator);
      const access = watchAccess(mayRead, clock);
      const signal = AbortSignal.any([closing.signal, goneSignal(reply), access.ended]);
      try {
        await watcher.waitUntilFinal(
          () => ledger.submissions.get(id),
          Number(request.query.timeout_s) * 1_000,
          signal,
        );
      } finally {
        access.stop();
      }
      if (!mayRead()) return sendEnded(reply);
      const submission = ledger.submissions.get(id);
      return submission ? reply.send(body(submission, request)) : notTracked(reply, id);
    },
  );

  app.patch(
    '/v1/submissions/:id',
    { config: WRITE, schema: OPERATIONS.updateSubmission },
    async (request, reply) => {
      const { id } = request.params;
      const now = clock.now();
      const patch = toOptionsPatch(request.body, { now, refusalOf: deps.refusalOf });
      if (patch.kind === 'invalid') return sendInvalidField(reply, patch.field, patch.reason);
      const result = ledger.audit.change(
        actorOf(request),
        now,
        () => ledger.store.update(id, patch.patch, now),
        (updated) =>
          updated?.kind === 'updated' &&
          updated.changed.length > 0 && {
            action: 'submissions.update',
            subject: updated.submission.submissionId,
            detail: updated.changed.join(', '),
          },
      );
      switch (result?.kind) {
        case undefined:
          return notTracked(reply, id);
        case 'late':
          return sendInvalidField(reply, 'deadline', 'the deadline is not in the future');
        case 'final': {
          const { submissionId, status } = result.submission;
          const retrack = canRetrack(status)
            ? '; POST /v1/submissions with "retrack": true tracks it again'
            : '';
          const detail = `${submissionId} is ${status}: only metadata, callback_url and data_hash can change${retrack}`;
          return sendProblem(reply, 409, detail);
        }
        case 'long_history': {
          const { submissionId } = result.submission;
          const detail = `the history of ${submissionId} has ${MAX_HISTORY} entries: it cannot be changed again`;
          return sendProblem(reply, 409, detail);
        }
        case 'updated': {
          const { submission, changed } = result;
          const fields = { submission_id: submission.submissionId, options: changed.join(', ') };
          if (changed.length > 0) logOf(request).info(fields, 'submission.updated');
          return reply.send(body(submission, request));
        }
        default:
          return result satisfies never;
      }
    },
  );

  app.delete(
    '/v1/submissions/:id',
    { config: WRITE, schema: OPERATIONS.cancelSubmission },
    async (request, reply) => {
      const { id } = request.params;
      const now = clock.now();
      const result = ledger.audit.change(
        actorOf(request),
        now,
        () => ledger.store.cancel(id, now),
        (ended) =>
          ended?.isChanged && {
            action: 'submissions.cancel',
            subject: ended.submission.submissionId,
          },
      );
      const submission = result?.submission;
      if (submission?.status === Status.cancelled)
        logOf(request).info(
          { submission_id: submission.submissionId, status: submission.status },
          'submission.cancelled',
        );
      return submission ? reply.send(body(submission, request)) : notTracked(reply, id);
    },
  );
}

function notTracked(reply: FastifyReply, submissionId: string): FastifyReply {
  return sendProblem(reply, 404, `${canonicalId(submissionId)} was never tracked here`);
}

export function submissionIdOf({
  routeOptions,
  params,
  query,
  body,
}: FastifyRequest): string | undefined {
  const isOfOne = routeOptions.url?.startsWith('/v1/submissions/:id');
  const { id } = (isOfOne ? params : {}) as { id?: unknown };
  const { submission_id } = Object.assign({}, query, body) as { submission_id?: unknown };
  const named = id ?? submission_id;
  return typeof named === 'string' && SUBMISSION_ID_PATTERN.test(named)
    ? canonicalId(named)
    : undefined;
}
