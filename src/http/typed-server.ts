import type {
  FastifyBaseLogger,
  FastifyInstance,
  RawReplyDefaultExpression,
  RawRequestDefaultExpression,
  RawServerDefault,
} from 'fastify';
import type { ZodTypeProvider } from 'fastify-type-provider-zod';

/** A server whose handlers get the types of their zod schemas. */
export type TypedServer = FastifyInstance<
  RawServerDefault,
  RawRequestDefaultExpression,
  RawReplyDefaultExpression,
  FastifyBaseLogger,
  ZodTypeProvider
>;

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The route needs no credential. Others need one, see access. */
    isOpen?: boolean;
  }
}

/** Routes of health checks and monitoring, which must always respond. */
const UNLIMITED: readonly string[] = ['/livez', '/readyz', '/metrics'];

/** Whether a route has no rate limit. */
export function isUnlimited(route: string | undefined): boolean {
  return route !== undefined && UNLIMITED.includes(route);
}
