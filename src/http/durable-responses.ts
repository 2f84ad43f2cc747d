import type { FastifyInstance } from 'fastify';

declare module 'fastify' {
  interface FastifyContextConfig {
    /**
     * Whether the response contains only ledger content that is on the disk, so that it need not
     * wait for the disk.
     */
    isDurable?: boolean;
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
