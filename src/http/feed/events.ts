import type { FastifyInstance } from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';
import { z } from 'zod';
import { submissionIdSchema } from '../../domain/track-request.ts';
import type { Credentials, EventLog } from '../ports.ts';
import { problemResponse, sendProblem } from '../problems.ts';
import type { EventFeed } from './event-feed.ts';
import { filterOf, metadataQuerySchema, typesSchema } from './event-filter.ts';

const seqSchema = z.string().regex(/^\d{1,15}$/, 'must be the sequence number of an event: a whole number, 0 or more');

const streamAnswer = {
  description: 'Server-sent events, until one side hangs up',
  content: {
    'text/event-stream': {
      schema: z
        .string()
        .describe(
          'Per event: `id:` its sequence number, `event:` its type, `data:` the event as JSON on one line, the same ' +
            'object that a webhook gets. A comment every 15 s; blocks without data tell the position alone. One of the type ' +
            '`feed.gap` comes first where events behind the position may be missing, up to `data.through`: they were kept no ' +
            'longer, or a backup was restored. One in between stands for an event that can not be read.',
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

/** The live feed: what happens, as it happens, and everything since a position before. */
export function registerEvents(
  instance: FastifyInstance,
  deps: { events: EventLog; feed: EventFeed; credentials: Credentials },
): void {
  const { events, feed, credentials } = deps;
  const app = instance.withTypeProvider<ZodTypeProvider>();
  instance.addHook('preClose', async () => feed.close());

  app.get(
    '/v1/events',
    {
      // Whoever asks for the head alone would open a stream that nobody reads.
      exposeHeadRoute: false,
      config: { staysOpen: true },
      schema: {
        operationId: 'readEvents',
        summary: 'The live feed of events',
        description:
          'Resumes after the event that Last-Event-ID or `after` names (the header wins), else begins now. No event is ' +
          'left out and none is repeated; where some are kept no longer, `feed.gap` says so. A reader that takes nothing between two heartbeats, although something waits for it, ' +
          'is hung up on; it can resume. A revoked credential ends the stream with the next heartbeat.',
        tags: ['events'],
        headers: z.looseObject({
          'last-event-id': seqSchema.optional().describe('The `id` of the last event received'),
        }),
        querystring: z.strictObject({
          after: seqSchema.optional().describe('The same for a first request; 0: from the very first event'),
          type: typesSchema.optional(),
          submission_id: submissionIdSchema.optional().describe('Only events about this submission'),
          metadata: metadataQuerySchema.optional(),
        }),
        response: {
          200: streamAnswer,
          400: problemResponse,
          401: problemResponse,
          403: problemResponse,
          503: problemResponse,
        },
      },
    },
    (request, reply) => {
      const { after, type, submission_id, metadata } = request.query;
      const lastEventId = request.headers['last-event-id'];
      const newest = events.newestSeq();
      const position = Number(lastEventId ?? after ?? newest);
      if (position > newest) {
        const pointer = lastEventId === undefined ? 'after' : 'last-event-id';
        const reason = `there is no event ${position} yet, the newest is ${newest}; was it of another ledger?`;
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
        // Tells nginx to pass events on as they come.
        'x-accel-buffering': 'no',
        // A stream is the last thing on its connection: closing the server need not wait for a next request.
        connection: 'close',
      });
      // Its end is the end of the connection: written in chunks, each telling would be three pieces for each reader.
      reply.raw.removeHeader('transfer-encoding');
      // The schema tells of the text that the stream gives.
      const { identity } = request;
      const mayRead = () => identity?.kind === 'known' && credentials(identity.hash) !== undefined;
      reply.send(feed.open({ position, filter, response: reply.raw, mayRead }) as never);
    },
  );
}
