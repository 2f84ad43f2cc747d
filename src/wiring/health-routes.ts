import { z } from 'zod';
import { type Authenticator, isOperator } from '../access/access.ts';
import { operations } from '../http/problems.ts';
import type { TypedServer } from '../http/typed-server.ts';
import { iso } from '../lib/clock.ts';
import { chainSchema, chainState, toChainBody } from '../polling/chain/chain-body.ts';
import type { ChainStatus } from '../polling/chain/port.ts';
import {
  pausedUntilSchema,
  upstreamReasonSchema,
  upstreamStateSchema,
} from '../polling/pacing-route.ts';
import type { UpstreamSummary } from '../polling/watcher.ts';

/** The state of Redis, without which a server works, too. */
export type RedisHealth = {
  state: 'up' | 'disconnected';
  workers: readonly string[];
  paused: readonly string[];
  disconnectedSince: number | null;
  /** When the last worker left, epoch ms; null: there is one, or there has been none. */
  workersLeftAt: number | null;
};

/** `redis`: undefined without Redis. `chain`: null if none is configured. */
export type Readiness = {
  ledgerWritable: boolean;
  upstreams: (UpstreamSummary & { chain: ChainStatus | null })[];
  redis?: RedisHealth | undefined;
  logLinesDropped: number;
};

const readinessStatus = z
  .enum(['ok', 'degraded', 'unavailable'])
  .describe('degraded: submissions are accepted, but an upstream is not up, or Redis')
  .meta({ id: 'ReadinessStatus' });
const ledgerState = z.enum(['ok', 'not_writable']).meta({ id: 'LedgerState' });
const redisState = z
  .enum(['up', 'disconnected'])
  .describe('disconnected: this server polls alone; events for queues and queued submissions wait')
  .meta({ id: 'RedisState' });
const readinessSchema = z
  .object({
    status: readinessStatus,
    ledger: ledgerState,
    upstreams: z.record(
      z.string(),
      z.object({
        state: upstreamStateSchema,
        reason: upstreamReasonSchema
          .optional()
          .describe(
            'The newest response of an outage or a pause; null if there is none. Operators only',
          ),
        paused_until: pausedUntilSchema.optional(),
        tracked: z.int().optional().describe('Submissions being polled; operators only'),
        in_flight: z.int().optional().describe('Requests in flight; operators only'),
        chain: z
          .union([chainSchema, chainSchema.pick({ state: true })])
          .optional()
          .describe(
            'Nodes of the chain, present if one is configured; operators get more than the state. Without a node, polling continues, so it does not change `status`',
          ),
      }),
    ),
    redis: z
      .object({
        state: redisState,
        paused: z.array(z.string()).describe('Names of the paused queues, whose jobs wait'),
        workers: z
          .array(z.string())
          .optional()
          .describe(
            'Names of the connected workers; without any, this server polls. Operators only',
          ),
      })
      .optional()
      .describe('Present if Redis is configured'),
    log_lines_dropped: z
      .int()
      .optional()
      .describe('Log lines since the start that could not be written; operators only'),
  })
  .describe('Whether submissions can be accepted, and the state of each component')
  .meta({
    id: 'Readiness',
    examples: [{ status: 'ok', ledger: 'ok', upstreams: { default: { state: 'up' } } }],
  });

const OPERATIONS = operations('operations', {
  getLiveness: {
    summary: 'Whether the process responds',
    security: [],
    response: {
      200: z
        .object({ status: z.literal('ok') })
        .describe('The process responds')
        .meta({ id: 'Liveness', examples: [{ status: 'ok' }] }),
    },
  },
  getReadiness: {
    summary: 'Whether submissions can be accepted',
    description:
      'Needs no credential and returns the names and states of components. The roles operator and admin also get counts, reasons and workers.',
    security: [],
    response: { 200: readinessSchema, 503: readinessSchema },
  },
});

export function registerHealth(
  app: TypedServer,
  deps: { authenticator: Authenticator; health: () => Readiness },
): void {
  app.get('/livez', { schema: OPERATIONS.getLiveness }, async () => ({
    status: 'ok' as const,
  }));

  const config = { prefersBearer: true };
  app.get('/readyz', { config, schema: OPERATIONS.getReadiness }, async (request, reply) => {
    const health = deps.health();
    const body = readinessOf(health, { isDetailed: isOperator(request, deps.authenticator) });
    return reply.code(health.ledgerWritable ? 200 : 503).send(body);
  });
}

/** The route is open, so names of hosts, counts and reasons are included for operators only. */
function readinessOf(
  { ledgerWritable, upstreams, redis, logLinesDropped }: Readiness,
  { isDetailed }: { isDetailed: boolean },
): z.output<typeof readinessSchema> {
  const isRedisUp = !redis || (redis.state === 'up' && redis.paused.length === 0);
  const allUp = isRedisUp && upstreams.every(({ state }) => state === 'up');
  return {
    status: ledgerWritable ? (allUp ? 'ok' : 'degraded') : 'unavailable',
    ledger: ledgerWritable ? 'ok' : 'not_writable',
    upstreams: Object.fromEntries(
      upstreams.map(({ upstream, state, reason, pause, tracked, inFlight, chain }) => [
        upstream,
        {
          state,
          ...(isDetailed && {
            ...{ reason, tracked, in_flight: inFlight },
            paused_until: pause && iso(pause.until),
          }),
          ...(chain && { chain: isDetailed ? toChainBody(chain) : { state: chainState(chain) } }),
        },
      ]),
    ),
    ...(redis && {
      redis: {
        ...{ state: redis.state, paused: [...redis.paused] },
        ...(isDetailed && { workers: [...redis.workers] }),
      },
    }),
    ...(isDetailed && { log_lines_dropped: logLinesDropped }),
  };
}
