import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { SandboxContext } from '../context.ts';
import { sendFault, throttled } from './fault-responses.ts';
import { retryAfterOf } from './rate-limit.ts';
import { submissionBody } from './wire.ts';

const submitSchema = z.object({ data: z.string().min(1) });
const lookupSchema = z.object({ submission_id: z.string() });

/** POST /v1/submit_data and /v1/submit_raw_data, and GET /v1/get_submission_info. */
export function addSubmissionRoutes(app: FastifyInstance, context: SandboxContext): void {
  const { options, model, traffic, faults, rateLimit, now } = context;
  const userId = context.users.list(1)[0]?.id ?? '';

  app.post('/v1/submit_data', async (request, reply) => {
    const body = submitSchema.safeParse(request.body);
    return submit(request, reply, body.success ? body.data.data : undefined);
  });

  app.register(async (raw) => {
    raw.removeAllContentTypeParsers();
    raw.addContentTypeParser('*', { parseAs: 'buffer' }, (_request, body, done) =>
      done(null, body),
    );
    raw.post('/v1/submit_raw_data', async (request, reply) =>
      submit(request, reply, Buffer.isBuffer(request.body) ? request.body : undefined),
    );
  });

  async function submit(
    request: FastifyRequest,
    reply: FastifyReply,
    data: string | Buffer | undefined,
  ): Promise<FastifyReply> {
    const refusal = keyRefusal(keyOf(request), options.apiKey);
    if (refusal !== undefined) return text(reply, 401, refusal);
    if (!data?.length) return text(reply, 400, 'Json deserialize error: missing field `data`');
    const body = { submission_id: model.submit(data, now()) };
    await context.delay();
    return reply.send(body);
  }

  app.get('/v1/get_submission_info', async (request, reply) => {
    traffic.requests += 1;
    const key = keyOf(request);
    const receivedMs = now();
    rateLimit.meter(key ?? '', receivedMs);
    const fault = faults.takeNext('submissions');
    const refusal = keyRefusal(key, options.apiKey);
    // Decided before the latency, which reorders responses and would make the window inexact.
    const isCounted = fault === undefined && refusal === undefined;
    const retryAfterMs = isCounted ? rateLimit.refuses(key ?? '', receivedMs) : undefined;
    await context.delay();

    if (fault !== undefined) sendFault(reply, fault);
    else if (refusal !== undefined) text(reply, 401, refusal);
    else if (retryAfterMs !== undefined) throttled(reply, retryAfterOf(retryAfterMs));
    else lookUp(request, reply);
    if (reply.statusCode === 429) traffic.throttled += 1;
    return reply;
  });

  function lookUp(request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const query = lookupSchema.safeParse(request.query);
    if (!query.success)
      return text(reply, 400, 'Query deserialize error: missing field `submission_id`');
    const id = parseSubmissionId(query.data.submission_id);
    if (!id.ok) return reply.code(406).send({ error: id.error });
    const row = model.read(id.submissionId, now());
    if (row !== undefined) return reply.send(submissionBody(row, userId));
    return reply.code(500).send({ error: 'Record not found' });
  }
}

function keyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['x-api-key'];
  return typeof key === 'string' ? key : undefined;
}

function keyRefusal(key: string | undefined, expected: string): string | undefined {
  if (key === undefined) return 'Missing API key';
  return key === expected ? undefined : 'Invalid API key';
}

function text(reply: FastifyReply, status: number, body: string): FastifyReply {
  return reply.code(status).type('text/plain').send(body);
}

const HEX_DIGITS = 32;

type ParsedId = { ok: true; submissionId: string } | { ok: false; error: string };

/**
 * Parses a UUID with or without hyphens in any case. The error is the text of the upstream's 406
 * response.
 */
function parseSubmissionId(given: string): ParsedId {
  const invalid = given.search(/[^0-9a-f-]/i);
  const digits = given.toLowerCase().replaceAll('-', '');
  if (invalid < 0 && digits.length === HEX_DIGITS)
    return { ok: true, submissionId: hyphenated(digits) };
  const at = invalid < 0 ? given.length : invalid;
  const found = given.charAt(at) || 'end of input';
  return {
    ok: false,
    error: `invalid character: expected [0-9a-fA-F-], found \`${found}\` at ${at + 1}`,
  };
}

function hyphenated(digits: string): string {
  const groups = [
    digits.slice(0, 8),
    digits.slice(8, 12),
    digits.slice(12, 16),
    digits.slice(16, 20),
  ];
  return [...groups, digits.slice(20)].join('-');
}
