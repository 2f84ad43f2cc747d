import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Ledger } from '../../ledger/ledger.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the response contains only ledger content that is on the disk, so that it need not wait for the disk. */
    isDurable?: boolean;
  }
}

type Durability = Pick<Ledger, 'whenDurable'>;

/**
 * Holds responses until all earlier commits are on the disk, so that acknowledgements, and data that a client has read, survive a
 * power failure. A 5xx response acknowledges nothing and is not held. Must be registered after every hook that writes.
 */
export function awaitDurability(app: FastifyInstance, ledger: Durability): void {
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isFree = request.routeOptions.config?.isDurable || reply.statusCode >= 500;
    const durable = isFree ? undefined : whenDurable(ledger, request);
    if (durable)
      durable.then(
        () => done(),
        (error: Error) => done(error),
      );
    else done();
  });
}

function whenDurable(ledger: Durability, { tenant }: FastifyRequest): Promise<unknown> | undefined {
  const own = ledger.whenDurable();
  const ofTenant = tenant?.services.ledger.whenDurable();
  return own && ofTenant ? Promise.all([own, ofTenant]) : (own ?? ofTenant);
}
