import { z } from 'zod';
import { type Authenticator, mayContinue } from '../access/access.ts';
import { operations, sendProblem } from '../http/problems.ts';
import { integer, SEVERAL } from '../http/query.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { explainIssue } from '../lib/explain-issue.ts';
import { canonicalId } from '../submissions/submission.ts';
import { submissionIdSchema } from '../submissions/track-request.ts';
import type { EventFeed, EventFilter, FeedLog } from './event-feed.ts';
import { createMatcher, eventTypeSchema, metadataFilterSchema } from './webhook.ts';

/** The `type` parameter: comma-separated, repeatable. */
const typesSchema = z
  .union([z.string(), z.array(z.string())])
  .transform((value) => [value].flat().flatMap((text) => text.split(',')))
  .superRefine((types, context) => {
    for (const type of types)
      addIssues(context, eventTypeSchema.safeParse(type, { error: explainIssue }));
  })
  .describe(
    'Only events of these types: exact ones, or wildcards like submission.*; comma-separated or repeated',
  )
  .meta(SEVERAL);

/** The `metadata` parameter: the metadata filter of a webhook as JSON. */
const metadataQuerySchema = z
  .string()
  .transform((text, context) => {
    const filter = metadataFilterSchema.safeParse(parseFilter(text), { error: explainIssue });
    addIssues(context, filter);
    return filter.data ?? z.NEVER;
  })
  .describe('Only events about submissions with this metadata, as JSON: {"team":"billing"}');

/**
 * Returns a filter for the given types, submission and metadata; undefined conditions match every
 * event.
 */
function filterOf(query: {
  types: readonly string[] | undefined;
  submissionId: string | undefined;
  metadata: Record<string, unknown> | undefined;
}): EventFilter {
  if (Object.values(query).every((condition) => condition === undefined)) return () => true;
  const { types = ['*'], submissionId, metadata = null } = query;
  const matches = createMatcher({ types, metadata });
  const id = submissionId && canonicalId(submissionId);
  return (event) => {
    const submission = 'submission' in event ? event.submission : undefined;
    if (id !== undefined && submission?.submissionId !== id) return false;
    return matches({ type: event.type, metadata: submission?.metadata ?? null });
  };
}

/** Reports the issues for the parameter as a whole, with the path in the message. */
function addIssues(context: z.core.$RefinementCtx, { error }: z.ZodSafeParseResult<unknown>): void {
  for (const { path, message } of error?.issues ?? [])
    context.addIssue({ code: 'custom', message: [...path, message].join(': ') });
}

/** Parses the filter; undefined if it is not JSON or has the key __proto__. */
function parseFilter(text: string): unknown {
  try {
    const filter: unknown = JSON.parse(text);
    return filter !== null && typeof filter === 'object' && Object.hasOwn(filter, '__proto__')
      ? undefined
      : filter;
  } catch {
    return undefined;
  }
}

const seqSchema = z
  .string()
  .regex(/^\d{1,15}$/, 'must be the sequence number of an event: a whole number, 0 or more')
  .meta(integer({ minimum: 0 }));

const streamResponse = {
  description: 'Server-sent events, until either side closes the connection',
  content: {
    'text/event-stream': {
      schema: z
        .string()
        .describe(
          'Per event: `id:` its sequence number, `event:` its type, `data:` the event as JSON on one line, the same ' +
            'object that a webhook receives. A comment is sent every 15 s; blocks without data only update the position. An ' +
            'event `feed.gap` at the start reports that events up to `data.through` may be missing, because they were pruned ' +
            'or a backup was restored; later in the stream it replaces an event that is damaged in the ledger.',
        )
        .meta({
          examples: [
            ': dawatch\nid: 41\n\nid: 42\nevent: upstream.up\ndata: {"id":"evt_0b5ad1c3f1e14f0f9b8f4f6f0d6d7a11","type":"upstream.up",' +
              '"timestamp":"2026-01-02T03:04:05.123Z","data":{"upstream":"default"}}\n\n',
          ],
        }),
    },
  },
};

const OPERATIONS = operations('events', {
  readEvents: {
    summary: 'Stream events',
    description:
      'Resumes after the event in Last-Event-ID or `after` (the header has precedence), otherwise starts with the next ' +
      'event. No event is skipped or repeated; `feed.gap` reports pruned ones. A reader that reads nothing between two ' +
      'heartbeats although data is waiting is disconnected and can resume. A stream ends at the next heartbeat after its ' +
      'credential has expired or was revoked, or its session has ended.',
    headers: z.looseObject({
      'last-event-id': seqSchema.optional().describe('The `id` of the last received event'),
    }),
    querystring: z.strictObject({
      after: seqSchema
        .optional()
        .describe('The same for a first request; 0 starts at the first event'),
      type: typesSchema.optional(),
      submission_id: submissionIdSchema.optional().describe('Only events about this submission'),
      metadata: metadataQuerySchema.optional(),
    }),
    response: { 200: streamResponse },
  },
});

export function registerEvents(
  app: TypedServer,
  deps: { events: FeedLog; feed: EventFeed; authenticator: Authenticator },
): void {
  const { events, feed, authenticator } = deps;
  app.addHook('preClose', async () => feed.close());

  app.get(
    '/v1/events',
    {
      // A HEAD request would open a stream without a reader.
      exposeHeadRoute: false,
      config: { staysOpen: true, roles: ['service', 'operator'] },
      schema: OPERATIONS.readEvents,
    },
    (request, reply) => {
      const { after, type, submission_id, metadata } = request.query;
      const lastEventId = request.headers['last-event-id'];
      const newest = events.newestSeq();
      const position = Number(lastEventId ?? after ?? newest);
      if (position > newest) {
        const pointer = lastEventId === undefined ? 'after' : 'last-event-id';
        const reason = `there is no event ${position} yet, the newest is ${newest}; is it from another ledger?`;
        const place = lastEventId === undefined ? 'query' : 'header';
        sendProblem(reply, {
          status: 400,
          detail: `${place} ${pointer}: ${reason}`,
          errors: [{ pointer, detail: reason }],
        });
        return;
      }
      const filter = filterOf({ types: type, submissionId: submission_id, metadata });
      reply.headers({
        'content-type': 'text/event-stream',
        'cache-control': 'no-store',
        // Disables buffering in nginx.
        'x-accel-buffering': 'no',
        // Closing the server then does not wait for another request on this connection.
        connection: 'close',
      });
      // Without chunks a write is one piece instead of three for each reader (row feed). The
      // connection's end ends the body.
      reply.raw.removeHeader('transfer-encoding');
      const mayRead = () => mayContinue(request, authenticator);
      reply.send(feed.open({ position, filter, response: reply.raw, mayRead }) as never);
    },
  );
}
