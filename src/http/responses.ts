import type { FastifyInstance, FastifyReply, preHandlerHookHandler } from 'fastify';
import { logOf } from './request-log.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Whether the response contains only ledger content that is on the disk, so that it need not
     * wait for the disk.
     */
    isDurable?: boolean;
    /** A route whose response takes milliseconds to build. */
    isExpensive?: boolean;
  }
}

/**
 * Holds responses until all earlier commits are on the disk, so that acknowledgements, and data
 * that a client has read, survive a power failure. A 5xx response acknowledges nothing and is not
 * held. Must be registered after every hook that writes.
 */
export function awaitDurability(
  app: FastifyInstance,
  ledger: { whenDurable(): Promise<void> | undefined },
): void {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isFree = request.routeOptions.config?.isDurable || reply.statusCode >= 500;
    const durable = isFree ? undefined : ledger.whenDurable();
    if (!durable) return done();
    durable.then(
      () => {
        // The response deadline may have sent a 503 meanwhile.
        if (!reply.raw.headersSent) done();
      },
      (error: Error) => done(error),
    );
  });
}

/**
 * Serves requests of expensive routes one at a time, with iterations of the event loop between
 * them. Without it, a flood of lists exceeds the memory and delays that SECURITY.md promises.
 * Applies to routes registered later.
 */
export function serializeExpensiveRoutes(app: FastifyInstance): void {
  const waiting: (() => void)[] = [];
  let isBusy = false;
  const next = () => {
    const serve = waiting.shift();
    isBusy = serve !== undefined;
    if (!serve) return;
    // Reading a request takes one iteration, and responding to it another.
    setImmediate(() => setImmediate(next));
    serve();
  };
  const wait: preHandlerHookHandler = (_request, reply, done) => {
    waiting.push(() => {
      if (!reply.raw.destroyed) done();
    });
    if (!isBusy) next();
  };
  app.addHook('onRoute', (route) => {
    if (route.config?.isExpensive) route.preHandler = [route.preHandler ?? [], wait].flat();
  });
}

/** Characters of unread responses over all connections. */
const MAX_UNREAD_CHARS = 64 * 1024 * 1024;
/** Shorter responses are not counted; other limits bound their number. */
const MIN_COUNTED_CHARS = 4 * 1024;

/**
 * Limits the unread responses in memory. Above the limit, the connection whose response has waited
 * longest is closed. Stored responses are shared and not counted. Must follow every other onSend
 * hook.
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
