import { fastify } from 'fastify';
import { serializerCompiler, validatorCompiler } from 'fastify-type-provider-zod';
import { expect, it, onTestFinished } from 'vitest';
import { registerMetrics } from '../../../src/http/metrics/route.ts';

/** The metrics route over values that show how often they were computed. */
async function openRoute() {
  const state = { now: 10_000, computed: 0, isFailing: false };
  const app = fastify();
  app.setValidatorCompiler(validatorCompiler);
  app.setSerializerCompiler(serializerCompiler);
  onTestFinished(() => app.close());
  registerMetrics(app, {
    metrics: {
      set: () => undefined,
      text: async () => {
        state.computed += 1;
        await new Promise((resolve) => setImmediate(resolve));
        if (state.isFailing) throw new Error('no values');
        return { contentType: 'text/plain; version=0.0.4; charset=utf-8', text: `computed ${state.computed}` };
      },
    },
    clock: { now: () => state.now, after: () => () => undefined },
    watcher: { pacing: () => [] },
    health: () => undefined,
    ledger: { stats: { counts: () => undefined, bytes: () => ({ database: 0, wal: 0 }) } },
    feed: { readers: 0 },
    waitingIds: () => 0,
    tenants: { all: [] },
  } as never);
  const get = async () => {
    const { statusCode, payload } = await app.inject('/metrics');
    return statusCode === 200 ? payload : statusCode;
  };
  return { state, get };
}

it('computes the metrics at most once a second', async () => {
  const { state, get } = await openRoute();
  const first = await Promise.all(Array.from({ length: 100 }, get));
  state.now += 999;
  expect(new Set([...first, await get()])).toEqual(new Set(['computed 1']));
  state.now += 1;
  expect([await get(), await get(), state.computed]).toEqual(['computed 2', 'computed 2', 2]);
});

it('computes them again after the clock is set back, and after a failure', async () => {
  const { state, get } = await openRoute();
  await get();
  state.now -= 3_600_000;
  expect(await get()).toBe('computed 2');
  state.isFailing = true;
  state.now += 1_000;
  expect(await get()).toBe(500);
  state.isFailing = false;
  expect(await get()).toBe('computed 4');
});
