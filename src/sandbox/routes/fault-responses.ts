import type { FastifyReply } from 'fastify';
import { retryAfterOf } from './rate-limit.ts';

const HUGE_BYTES = 10 * 1024 * 1024;
const BODY = JSON.stringify({
  id: '3f0c2b1e-4f0a-4c7e-9a51-0d6b8f5c2a77',
  state: 'Finalized',
  error: null,
  data: {},
});
const HALF = BODY.slice(0, BODY.length / 2);
const JSON_HEADERS = { 'content-type': 'application/json' } as const;

/** `retryAfterS`: of a `throttle`. */
type SendFault = (reply: FastifyReply, retryAfterS: number) => FastifyReply;

/** Faults by kind, as proxies, database pools and networks produce them. */
const FAULTS = {
  hang: (reply) => reply.hijack(),
  reset(reply) {
    reply.raw.destroy();
    return reply.hijack();
  },
  html_502: (reply) => html(reply, 502, 'Bad Gateway'),
  html_503: (reply) => html(reply, 503, 'Service Temporarily Unavailable'),
  throttle: (reply, retryAfterS) => throttled(reply, retryAfterOf(retryAfterS * 1000)),
  unauthorized: (reply) => reply.code(401).type('text/plain').send('Invalid API key'),
  database: (reply) => reply.code(500).send({ state: 'ERROR', error: 'Database connection error' }),
  truncated: (reply) => reply.code(200).headers(JSON_HEADERS).send(HALF),
  not_json: (reply) =>
    reply.code(200).headers(JSON_HEADERS).send('<!doctype html><title>Welcome</title>'),
  huge: (reply) => reply.code(200).send({ error: 'x'.repeat(HUGE_BYTES) }),
  redirect: (reply) => reply.redirect('http://elsewhere.invalid/', 302),
} satisfies Record<string, SendFault>;

export type Fault = { kind: keyof typeof FAULTS; retryAfterS: number };

export function sendFault(reply: FastifyReply, { kind, retryAfterS }: Fault): FastifyReply {
  const send: SendFault = FAULTS[kind];
  return send(reply, retryAfterS);
}

/** Sends a 429 response with a plain-text body, as proxies do. */
export function throttled(reply: FastifyReply, retryAfter: string): FastifyReply {
  reply.header('retry-after', retryAfter);
  return reply.code(429).type('text/plain').send('Too many requests');
}

function html(reply: FastifyReply, status: number, reason: string): FastifyReply {
  const title = `${status} ${reason}`;
  return reply
    .code(status)
    .type('text/html')
    .send(
      `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n`,
    );
}
