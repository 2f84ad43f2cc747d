import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { sendProblem } from './problems.ts';
import { logOf } from './request-log.ts';

/** Pipelined requests per connection; clients that pipeline send a few at a time. */
const MAX_PIPELINED = 16;
/** Characters of unread responses over all connections. */
const MAX_UNREAD_CHARS = 64 * 1024 * 1024;
/** Shorter responses are not counted; other limits bound their number. */
const MIN_COUNTED_CHARS = 4 * 1024;

/** Node's HTTP parser of a connection, which is no public interface. Without it, the limit holds but costs more. */
type WithParser = Socket & {
  parser?: { onIncoming?: ((request: unknown, keepAlive: boolean) => number) | null } | null;
};

/** Return value that makes the parser skip the rest of the packet. */
const STOP_PARSING = 2;

/**
 * Limits the pipelined requests of a connection: the first one above the limit is refused with 429, later ones are not parsed,
 * and the connection is closed. A packet can carry thousands of requests, which cost memory and time even if they are refused.
 * Requests are counted before routing, because hooks do not run for requests that the router refuses. Must precede hooks that wait.
 */
export function limitPipelining(app: FastifyInstance): void {
  const pending = new WeakMap<Socket, number>();
  const of = (socket: Socket) => pending.get(socket) ?? 0;
  const add = ({ socket }: IncomingMessage, response: ServerResponse) => {
    pending.set(socket, of(socket) + 1);
    response.once('close', () => pending.set(socket, of(socket) - 1));
  };
  for (const event of ['request', 'checkExpectation']) app.server.prependListener(event, add);
  app.server.on('connection', (socket: WithParser) => {
    const { parser } = socket;
    const accept = parser?.onIncoming;
    if (!parser || !accept) return;
    parser.onIncoming = (request, keepAlive) =>
      of(socket) > MAX_PIPELINED ? STOP_PARSING : accept(request, keepAlive);
  });
  app.addHook('onRequest', ({ raw: { socket } }, reply, done) => {
    if (of(socket) <= MAX_PIPELINED) {
      done();
      return;
    }
    const detail = `more than ${MAX_PIPELINED} requests of this connection are waiting for responses`;
    sendProblem(reply.header('connection', 'close'), { status: 429, detail });
  });
}

/**
 * Limits the unread responses in memory. Above the limit, the connection whose response has waited longest is closed. Stored
 * responses are shared and not counted. Must follow every other onSend hook but `coalesceResponses`.
 */
export function limitUnreadResponses(app: FastifyInstance, maxChars = MAX_UNREAD_CHARS): void {
  /** Unread responses and their lengths, oldest first. */
  const unread = new Map<FastifyReply, number>();
  let total = 0;
  const remove = (reply: FastifyReply) => {
    total -= unread.get(reply) ?? 0;
    unread.delete(reply);
  };
  const cutOff = (slowest: FastifyReply) => {
    const { socket } = slowest.request.raw;
    logOf(slowest.request).warn({ waiting_bytes: total }, 'http.slow_client_closed');
    socket.destroy();
    for (const reply of unread.keys()) if (reply.request.raw.socket === socket) remove(reply);
  };
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (typeof payload === 'string' && payload.length >= MIN_COUNTED_CHARS) {
      unread.set(reply, payload.length);
      total += payload.length;
      reply.raw.once('close', () => remove(reply));
      for (const slowest of unread.keys()) {
        if (total <= maxChars || slowest === reply) break;
        cutOff(slowest);
      }
    }
    done();
  });
}
