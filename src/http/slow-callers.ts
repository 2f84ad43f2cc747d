import type { ServerOptions } from 'node:http';
import type { FastifyInstance } from 'fastify';

/** Node looks for requests that take too long this many times within what they may take. */
const LOOKS = 6;

/**
 * A request must have come whole within this time, counted from the first byte, on a new connection from connecting.
 * Node takes the time of the headers for that of the whole request where the latter is shorter, so both are given.
 */
export function requestTimeouts(timeoutMs: number): ServerOptions {
  const requestTimeout = Math.ceil(timeoutMs);
  return {
    requestTimeout,
    headersTimeout: requestTimeout,
    connectionsCheckingInterval: Math.max(1, Math.floor(timeoutMs / LOOKS)),
  };
}

/**
 * Hangs up on callers who take nothing of their answer for the time of `connectionTimeout`. An answer that is still to come, as that of a long poll
 * or of a quiet feed, may take any time.
 */
export function dropStalledReaders(app: FastifyInstance): void {
  app.server.on('request', (_request, response) => {
    response.on('timeout', () => {
      if (response.writableLength > 0 || (response.socket?.writableLength ?? 0) > 0) response.destroy();
    });
  });
}
