import { expect, onTestFinished, test } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { sleep } from '../../support/processes/killable-server.ts';
import { seeded } from '../../support/seed.ts';
import { allDelivered, createWebhook } from '../../support/servers/deliveries.ts';
import { openEventReceiver } from '../../support/servers/event-receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { allFinalized, auditAfterFault } from '../support/audit.ts';
import { startClients } from './clients.ts';
import {
  eventIds,
  expectEarlierState,
  finalizedIds,
  hasSubmission,
  waitingEvents,
} from './ledgers.ts';
import { isLitestreamMissing } from './litestream.ts';
import { type Machine, prepareMachine } from './machine.ts';

/**
 * The budget of the upstream. The clients need more, so that it is always exhausted, and its window
 * exceeds the downtime.
 */
const REQUESTS = 500;
const WINDOW_S = 5;
const SPEED = 40;

const REFUSED = {
  code: ExitCode.server,
  message: expect.stringContaining('another server continues the replica'),
};

test.skipIf(isLitestreamMissing)(
  'machines are lost: what was replicated is kept, the budget holds, and a machine that returns is refused',
  async () => {
    const { seed, between } = seeded('failover');
    const limit = { rateLimit: REQUESTS, rateLimitPerS: WINDOW_S * SPEED };
    const sandbox = await startSandbox({
      options: { seed, speed: SPEED, errorRate: 0.1, ...limit },
    });
    onTestFinished(() => sandbox.close());
    const receiver = await openEventReceiver();
    const budget = { requests: REQUESTS, per_s: WINDOW_S, concurrency: 64 };
    const settings = {
      upstreams: {
        default: {
          ...{ url: sandbox.url, api_key: 'sandbox-key', timeout_s: 1, budget },
          lag_price: 1_000,
        },
      },
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      log: { level: 'info' },
    };
    const replicaFolder = tempFolder();
    const first = await prepareMachine(replicaFolder, settings);
    const second = await prepareMachine(replicaFolder, settings);
    await first.start();
    await first.listening();
    receiver.secret = await createWebhook(first.url, receiver.url);
    const submit = (count: number) =>
      Array.from({ length: count }, () => sandbox.model.submit('data', Date.now()));
    const clients = startClients({ machine: first, submit });
    const lostEvents = new Set<string>();

    const failOver = async (from: Machine, to: Machine) => {
      const confirmed = [...clients.acknowledged.keys()];
      const newest = await clients.trackOne();
      while (!hasSubmission(await from.replicated(), newest)) await sleep(100);
      await sleep(between(500, 3_000));
      const requests = sandbox.stats().maxRequestsPerWindow;
      await from.die();
      const diedAt = Date.now();
      clients.moveTo(to);
      const lost = from.copyOfLedger();
      const received = new Set(receiver.bodies.keys());

      const restored = await to.start();
      await to.listening();
      await clients.trackOne();
      const downMs = Date.now() - diedAt;
      if (restored === undefined) throw new Error('nothing was restored');
      const missing = expectEarlierState(restored, lost);
      const missingIds = new Set(missing.submissions);
      expect([...confirmed, newest].filter((id) => missingIds.has(id))).toEqual([]);
      await clients.trackAgain();
      for (const id of missing.events) lostEvents.add(id);

      const times = [...clients.acknowledged];
      const lostTimes = times
        .filter(([id, at]) => missingIds.has(id) && at <= diedAt)
        .map(([, at]) => at);
      console.log(
        [
          `failover: ${lostTimes.length} of ${times.length} ids lost`,
          `the oldest acknowledged ${((diedAt - Math.min(diedAt, ...lostTimes)) / 1_000).toFixed(1)} s before the end`,
          `down for ${(downMs / 1_000).toFixed(1)} s`,
          `${waitingEvents(restored).filter((id) => received.has(id)).length} events again under their id`,
          `${missing.events.filter((id) => received.has(id)).length} under a new one`,
          `at most ${requests} of ${REQUESTS} requests per window before`,
        ].join(', '),
      );
    };

    await failOver(first, second);
    await second.claimed(2);
    await expect(first.start()).rejects.toMatchObject(REFUSED);
    expect(first.isGone()).toBe(true);

    // The refused machine gets an empty disk, and takes over again.
    first.wipe();
    await first.redis.restart();
    await failOver(second, first);
    await first.claimed(3);
    await expect(second.start()).rejects.toMatchObject(REFUSED);

    await clients.stop();
    const expected = allFinalized(clients.acknowledged.keys());
    await allDelivered(first.file, expected.size);
    const known = new Set(eventIds(first.file));
    const unknown = [...receiver.bodies.keys()].filter((id) => !known.has(id));
    expect(unknown.filter((id) => !lostEvents.has(id))).toEqual([]);
    expect([...receiver.bodies].filter(([, bodies]) => bodies.size !== 1)).toEqual([]);
    for (const id of unknown) receiver.bodies.delete(id);
    expect(finalizedIds(first.file).toSorted()).toEqual([...expected.keys()].toSorted());
    await auditAfterFault({ server: first, expected, receiver });
    // After a graceful stop, nothing is missing in the replica.
    expect(expectEarlierState(await first.replicated(), first.file)).toEqual({
      submissions: [],
      events: [],
    });
    expect(sandbox.stats()).toMatchObject({ throttled: 0 });
    expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(REQUESTS);
  },
);
