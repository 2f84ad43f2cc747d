import { describe, expect, it, onTestFinished } from 'vitest';
import { Heartbeat } from '../../src/alerts/heartbeat.ts';
import type { PostResult } from '../../src/notifications/transport/http-post.ts';
import { createVirtualClock } from '../support/virtual-time/virtual-clock.ts';

const ACCEPTED: PostResult = {
  kind: 'response',
  httpStatus: 200,
  retryAfterMs: null,
  response: null,
};
const settings = { url: 'https://hc.example/secret', everyMs: 60_000 };

/** A heartbeat in virtual time. `respond` and `defect` may be replaced. */
function openHeartbeat() {
  const clock = createVirtualClock(0);
  const calls: { at: number; url: string }[] = [];
  const beats: string[] = [];
  const world = {
    clock,
    calls,
    beats,
    respond: async (_signal: AbortSignal): Promise<PostResult> => ACCEPTED,
    defect: undefined as string | undefined,
  };
  const heartbeat = new Heartbeat({
    ...settings,
    clock,
    get: ({ url, signal }) => {
      calls.push({ at: clock.now(), url });
      return world.respond(signal);
    },
    defect: () => world.defect,
    onBeat: ({ result, reason }) => beats.push(reason === null ? result : `${result}: ${reason}`),
  });
  onTestFinished(() => heartbeat.stop());
  return Object.assign(world, { heartbeat });
}

describe('the heartbeat', () => {
  it('calls the address at once and then at the interval', async () => {
    const { clock, calls, beats, heartbeat } = openHeartbeat();
    heartbeat.start();
    await clock.advance(150_000);
    expect(calls).toEqual([0, 60_000, 120_000].map((at) => ({ at, url: settings.url })));
    expect(beats).toEqual(['sent', 'sent', 'sent']);
  });

  it('calls nothing while the server does not work, and continues when it works again', async () => {
    const world = openHeartbeat();
    world.heartbeat.start();
    await world.clock.advance(1);
    world.defect = 'the ledger is not writable';
    await world.clock.advance(120_000);
    world.defect = undefined;
    await world.clock.advance(60_000);
    expect(world.calls).toHaveLength(2);
    const withheld = 'withheld: the ledger is not writable';
    expect(world.beats).toEqual(['sent', withheld, withheld, 'sent']);
  });

  it.each<[PostResult, string]>([
    [{ ...ACCEPTED, httpStatus: 404 }, 'failed: responded with 404'],
    [
      { kind: 'no_response', error: 'the connection was refused' },
      'failed: the connection was refused',
    ],
  ])('reports %j as a failure, and calls again after the interval', async (response, expected) => {
    const world = openHeartbeat();
    world.respond = async () => response;
    world.heartbeat.start();
    await world.clock.advance(60_000);
    expect(world.beats).toEqual([expected, expected]);
  });

  it('has one call in flight at most, and aborts it at its stop', async () => {
    const world = openHeartbeat();
    const signals: AbortSignal[] = [];
    world.respond = (signal) => {
      signals.push(signal);
      return new Promise(() => undefined);
    };
    world.heartbeat.start();
    await world.clock.advance(200_000);
    expect(signals).toHaveLength(1);
    world.heartbeat.stop();
    expect(signals[0]?.aborted).toBe(true);
  });
});
