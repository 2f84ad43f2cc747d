import http from 'node:http';
import { WORLD_NAMES } from '../../../src/sandbox/chain/worlds.ts';
import { createModel } from '../../../src/sandbox/model.ts';
import { createNodeServer } from '../../../src/sandbox/node/node-server.ts';
import { sandboxOptionsSchema } from '../../../src/sandbox/options.ts';
import { submissionBody } from '../../../src/sandbox/routes/wire.ts';
import type { Machine } from '../machine/machine.ts';
import type { Network, Reply, Sent } from '../machine/network.ts';
import { createRandom } from '../machine/random.ts';

export const UPSTREAM_URL = 'http://upstream.test';
const NODE_ADDRESS = 'node.test:9944';
export const NODE_URL = `ws://${NODE_ADDRESS}`;
const RETRY_AFTER_S = 30;
/** How long a response may be on its way. */
const ON_THE_WAY_MS = 100;
export const BUDGET = { requests: 20, per_s: 10, concurrency: 8 };

const json = (status: number, body: unknown): Reply => ({
  kind: 'response',
  status,
  body: JSON.stringify(body),
});
const page = (status: number, headers = {}): Reply => ({
  kind: 'response',
  status,
  body: '<html><title>Error</title></html>',
  headers: { 'content-type': 'text/html', ...headers },
});

/** A few submissions for which the upstream always fails, whether it works or not. */
const alwaysFails = (id: string) => id.startsWith('00');

/** What the upstream responds instead of the truth. None of it may end or finalize a submission. */
export const UPSTREAM_FAULTS = {
  refused: () => ({ kind: 'reset' }),
  hanging: () => ({ kind: 'hang' }),
  bad_gateway: () => page(502),
  throttled: () => page(429, { 'retry-after': String(RETRY_AFTER_S) }),
  unauthorized: () => ({ kind: 'response', status: 401, body: 'Invalid API key' }),
  database: () => json(500, { state: 'ERROR', error: 'Database connection error' }),
  forgetful: () => json(500, { error: 'Record not found' }),
  truncated: () => ({ kind: 'response', status: 200, body: '{"state":"Finalized","error":nu' }),
  another: () =>
    json(200, {
      id: '00000000-0000-4000-a000-000000000000',
      state: 'Finalized',
      error: null,
      data: { block_hash: '0x1' },
    }),
  // Also about rows that it does not have: afterwards it has lost them.
  without_block: () => json(200, { state: 'Finalized', error: null, data: { block_hash: null } }),
  slow: (truth) => ({ delayMs: 8_000, ...truth }),
} satisfies Record<string, (truth: Reply) => Reply>;
export type UpstreamFault = keyof typeof UPSTREAM_FAULTS;

export type Upstream = ReturnType<typeof createUpstream>;

/** The upstream: the sandbox's model of a chain, and its faults. */
export function createUpstream(deps: {
  machine: Machine;
  network: Network;
  seed: number;
  onDefect: (text: string) => void;
  /** When a process may have lost what it knew, or have another time, the last time. */
  disturbedAt: () => number;
}) {
  const { machine, network, seed, onDefect, disturbedAt } = deps;
  const options = sandboxOptionsSchema.parse({
    seed,
    world: createRandom(seed, 'upstream').pick(WORLD_NAMES),
    errorRate: 0.05,
    stragglerRate: 0.02,
    lostRate: 0.02,
    deadRate: 0.02,
    regressRate: 0.01,
  });
  const model = createModel(options);
  const node = createNodeServer({
    options,
    model,
    now: () => machine.now,
    after: (delayMs, run) => machine.later(delayMs, run),
  });
  network.servers.set(NODE_ADDRESS, http.createServer().on('upgrade', node.upgrade));
  /** When the latest requests arrived, as many as the budget allows in its window. */
  const times: number[] = [];
  const inFlight = new Set<Sent>();
  const polledAt = new Map<string, number>();
  /** When the pause that is kept now was asked for: the first time, and the last time. */
  let throttledFrom = 0;
  let throttledAt = 0;
  /** The request budget holds in every window, and a pause that was asked for is kept. */
  const checkLimits = (sent: Sent) => {
    times.push(machine.now);
    const first = times.length > BUDGET.requests ? times.shift() : undefined;
    if (first !== undefined && machine.now - first < BUDGET.per_s * 1_000)
      onDefect(`${BUDGET.requests + 1} requests within ${machine.now - first} ms`);
    for (const each of inFlight) if (each.isOver()) inFlight.delete(each);
    if (inFlight.add(sent).size > BUDGET.concurrency)
      onDefect(`${inFlight.size} requests in flight`);
    const agoMs = machine.now - throttledFrom;
    if (agoMs > ON_THE_WAY_MS && agoMs < RETRY_AFTER_S * 1_000 && disturbedAt() < throttledFrom)
      onDefect(`a request ${agoMs} ms after a response with Retry-After: ${RETRY_AFTER_S}`);
  };
  return {
    polls: 0,
    /** When each submission was polled last. */
    polledAt,
    node,
    fault: undefined as UpstreamFault | undefined,
    submit: () => model.submit('data', machine.now),
    /** Whether the upstream has a row about a submission. */
    has: (id: string) => model.read(id, machine.now) !== undefined,
    /** Returns when a submission became final; undefined: it has not. */
    finalizedAt: (id: string) => (alwaysFails(id) ? undefined : model.finalizedAt(id, machine.now)),
    receive(sent: Sent): Reply {
      const id = sent.url.searchParams.get('submission_id') ?? '';
      this.polls += 1;
      checkLimits(sent);
      polledAt.set(id, machine.now);
      const row = model.read(id, machine.now);
      const body = row && submissionBody(row, 'user');
      const truth =
        body && !alwaysFails(id)
          ? json(200, body)
          : json(500, { error: body ? 'Database error' : 'Record not found' });
      if (this.fault === 'throttled') {
        if (machine.now - throttledAt >= RETRY_AFTER_S * 1_000) throttledFrom = machine.now;
        throttledAt = machine.now;
      }
      return this.fault === undefined ? truth : UPSTREAM_FAULTS[this.fault](truth);
    },
  };
}
