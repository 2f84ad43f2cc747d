import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { finalityGapSchema } from '../chain/worlds.ts';
import type { SandboxContext } from '../context.ts';
import { type NodeFault, nodeFaultSchema } from '../node/node-faults.ts';
import { faultOrderSchema } from './faults.ts';

/**
 * Target of a `redirect` fault. A client that requests it has followed the redirect and disclosed
 * its key.
 */
export const REDIRECT_PATH = '/_sandbox/elsewhere';

const gapChangeSchema = z.object({ blocks: finalityGapSchema });

/** Routes for demos, tests and benchmarks: traffic statistics, faults, chain parameters. */
export function addOperatorRoutes(
  app: FastifyInstance,
  context: SandboxContext & { setNodeFault(fault: NodeFault): void },
): void {
  const { model, traffic, now } = context;

  app.get('/_sandbox/stats', async () => statsBody(statsOf(context)));

  app.get<{ Params: { id: string } }>('/_sandbox/submissions/:id', async ({ params }) => {
    const finalizedMs = model.finalizedAt(params.id, now());
    return {
      requests: traffic.requestsBySubmission.get(params.id) ?? 0,
      // Rounded up, so that no response appears to precede finality.
      finalized_at:
        finalizedMs === undefined ? null : new Date(Math.ceil(finalizedMs)).toISOString(),
    };
  });

  app.post('/_sandbox/faults', async (request, reply) => {
    const order = faultOrderSchema.safeParse(request.body);
    if (!order.success)
      return reply.code(400).type('text/plain').send(z.prettifyError(order.error));
    context.faults.inject(order.data);
    return reply.code(204).send();
  });

  app.post('/_sandbox/finality-gap', async (request, reply) => {
    const gap = gapChangeSchema.safeParse(request.body);
    if (!gap.success) return reply.code(400).type('text/plain').send(z.prettifyError(gap.error));
    model.setFinalityGap(gap.data.blocks, now());
    return reply.code(204).send();
  });

  app.post('/_sandbox/node', async (request, reply) => {
    const fault = nodeFaultSchema.safeParse(request.body);
    if (!fault.success)
      return reply.code(400).type('text/plain').send(z.prettifyError(fault.error));
    context.setNodeFault(fault.data);
    return reply.code(204).send();
  });

  app.get(REDIRECT_PATH, async () => {
    traffic.redirectsFollowed += 1;
    return { error: 'This response is not the upstream’s.' };
  });
}

/** Statistics for demos, tests and benchmarks. */
export function statsOf({ model, traffic, rateLimit, now }: SandboxContext) {
  const { requestsBySubmission: _, ...counts } = traffic;
  return {
    submitted: model.size,
    finalized: model.finalizedCount(now()),
    ...counts,
    maxRequestsPerWindow: rateLimit.maxPerWindow,
    windowMs: rateLimit.windowMs,
  };
}

/** Returns the statistics with snake_case names. */
function statsBody(stats: ReturnType<typeof statsOf>): object {
  const snakeCase = (name: string) =>
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  return Object.fromEntries(Object.entries(stats).map(([name, value]) => [snakeCase(name), value]));
}
