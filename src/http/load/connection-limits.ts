import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { sendProblem } from '../problems.ts';
import { logOf } from '../request-log.ts';

/** Requests of one connection that may wait for their answers; clients that pipeline send a few at a time. */
const MAX_UNANSWERED = 16;
/** Characters of answers that clients have not read yet, over all connections. */
const MAX_UNREAD_CHARS = 64 * 1024 * 1024;
/** Shorter answers are not counted: other limits bound how many there are. */
const LEAST_COUNTED_CHARS = 4 * 1024;

/** What Node keeps with a connection. It is no public interface: without it, the limit holds but costs more. */
type WithParser = Socket & {
  parser?: { onIncoming?: ((request: unknown, keepAlive: boolean) => number) | null } | null;
};

/** Returned to the parser, this ends its work on the packet. */
const STOP_PARSING = 2;

/**
 * Bounds the requests of one connection that wait for their answers: the first one beyond is refused with 429, what comes
 * after it is not looked at, and the connection is closed. One packet carries thousands of requests, which take memory and
 * time even if nothing is done for them. Counted before routing: hooks do not see what the router refuses. Comes before hooks
 * that wait.
 */
export function limitPipelining(app: FastifyInstance): void {
  const unanswered = new WeakMap<Socket, number>();
  const of = (socket: Socket) => unanswered.get(socket) ?? 0;
  const add = ({ socket }: IncomingMessage, response: ServerResponse) => {
    unanswered.set(socket, of(socket) + 1);
    response.once('close', () => unanswered.set(socket, of(socket) - 1));
  };
  for (const event of ['request', 'checkExpectation']) app.server.prependListener(event, add);
  app.server.on('connection', (socket: WithParser) => {
    const { parser } = socket;
    const accept = parser?.onIncoming;
    if (!parser || !accept) return;
    parser.onIncoming = (request, keepAlive) =>
      of(socket) > MAX_UNANSWERED ? STOP_PARSING : accept(request, keepAlive);
  });
  app.addHook('onRequest', ({ raw: { socket } }, reply, done) => {
    if (of(socket) <= MAX_UNANSWERED) {
      done();
      return;
    }
    const detail = `more than ${MAX_UNANSWERED} requests of this connection wait for their answers`;
    sendProblem(reply.header('connection', 'close'), { status: 429, detail });
  });
}

/**
 * Bounds the answers that wait in memory for their clients to read. Past the limit the connection is closed whose answer has
 * waited longest, so that clients that read keep theirs. Stored answers are shared, and take no memory of their own. Comes
 * after every other hook of answers.
 */
export function limitUnreadResponses(app: FastifyInstance, maxChars = MAX_UNREAD_CHARS): void {
  /** In the order in which they were answered. */
  const unread = new Map<FastifyReply, number>();
  let total = 0;
  const forget = (reply: FastifyReply) => {
    total -= unread.get(reply) ?? 0;
    unread.delete(reply);
  };
  const cutOff = (slowest: FastifyReply) => {
    const { socket } = slowest.request.raw;
    logOf(slowest.request).warn({ waiting_bytes: total }, 'http.slow_client_closed');
    socket.destroy();
    for (const reply of unread.keys()) if (reply.request.raw.socket === socket) forget(reply);
  };
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (typeof payload === 'string' && payload.length >= LEAST_COUNTED_CHARS) {
      unread.set(reply, payload.length);
      total += payload.length;
      reply.raw.once('close', () => forget(reply));
      for (const slowest of unread.keys()) {
        if (total <= maxChars || slowest === reply) break;
        cutOff(slowest);
      }
    }
    done();
  });
}
