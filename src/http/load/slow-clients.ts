import type { ServerOptions } from 'node:http';
import type { FastifyInstance } from 'fastify';

/** Checks per timeout. */
const CHECKS = 6;

/**
 * Returns Node's options for the time to receive a complete request, counted from its first byte or, for the first request, from
 * connecting. Both limits are set, because the one for headers would otherwise replace a shorter one.
 */
export function requestTimeouts(timeoutMs: number): ServerOptions {
  const requestTimeout = Math.ceil(timeoutMs);
  return {
    requestTimeout,
    headersTimeout: requestTimeout,
    connectionsCheckingInterval: Math.max(1, Math.floor(timeoutMs / CHECKS)),
  };
}

/**
 * Disconnects clients that read nothing of their response for `connectionTimeout`. A response without data, such as a long poll
 * or a quiet feed, may take any time.
 */
export function dropStalledReaders(app: FastifyInstance): void {
  app.server.on('request', (_request, response) => {
    response.on('timeout', () => {
      if (response.writableLength > 0 || (response.socket?.writableLength ?? 0) > 0) response.destroy();
    });
  });
}
