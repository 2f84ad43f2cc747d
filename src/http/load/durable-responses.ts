import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Ledger } from '../../ledger/ledger.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the response contains only ledger content that is on the disk, so that it need not wait for the disk. */
    isDurable?: boolean;
    /** Whether the request changes or reads ledgers of tenants that it does not select, so that the response waits for all ledgers. */
    concernsAllTenants?: boolean;
  }
}

type Durability = Pick<Ledger, 'whenDurable'>;

/**
 * Holds responses until all earlier commits are on the disk, so that acknowledgements, and data that a client has read, survive a
 * power failure. A 5xx response acknowledges nothing and is not held. Must be registered after every hook that writes.
 */
export function awaitDurability(
  app: FastifyInstance,
  ledger: Durability,
  ledgersOfTenants: () => readonly Durability[],
): void {
  const ledgersOf = ({ tenant, routeOptions }: FastifyRequest): readonly Durability[] => {
    if (routeOptions.config?.concernsAllTenants) return [ledger, ...ledgersOfTenants()];
    return tenant ? [ledger, tenant.services.ledger] : [ledger];
  };
  app.addHook('onSend', (request, reply, _payload, done) => {
    const isFree = request.routeOptions.config?.isDurable || reply.statusCode >= 500;
    const pending = isFree ? [] : ledgersOf(request).flatMap((one) => one.whenDurable() ?? []);
    if (pending.length === 0) return done();
    Promise.all(pending).then(
      () => done(),
      (error: Error) => done(error),
    );
  });
}
