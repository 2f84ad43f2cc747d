import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Ledger } from '../../ledger/ledger.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The response shows nothing of the ledger that is not on the disk, so it does not wait for the disk. */
    isDurable?: boolean;
  }
}

type Durability = Pick<Ledger, 'whenDurable'>;

/**
 * Holds responses until everything that was committed before them is on the disk: an acknowledgement survives a power failure,
 * and so does what a client has read. A response of 5xx promises nothing and is not held. Must follow every hook that writes.
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
