import { expect, onTestFinished, test } from 'vitest';
import { ExitCode } from '../../../src/cli/exit.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import { sleep, trackUntilAcknowledged } from '../../support/processes/killable-server.ts';
import { seeded } from '../../support/seed.ts';
import { allDelivered, createWebhook, eventIdsOf } from '../../support/servers/deliveries.ts';
import { openEventReceiver } from '../../support/servers/event-receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { auditAfterFault } from '../support/audit.ts';
import { expectEarlierState, finalizedIds, generationOf, hasSubmission } from './ledgers.ts';
import { isLitestreamMissing, prepareMachine } from './machine.ts';

/**
 * The budget of the upstream. The clients need more, so that it is always exhausted, and its window
 * exceeds the downtime.
 */
const REQUESTS = 500;
const WINDOW_S = 5;
const SPEED = 40;
const BATCH = 20;
const PAUSE_MS = 200;

test.skipIf(isLitestreamMissing)(
  'a machine is lost: what was replicated is kept, the budget holds, and the machine is refused when it returns',
  async () => {
    const { seed, between } = seeded('failover');
    const limit = { rateLimit: REQUESTS, rateLimitPerS: WINDOW_S * SPEED };
    const sandbox = await startSandbox({
      options: { seed, speed: SPEED, errorRate: 0.1, ...limit },
    });
    onTestFinished(() => sandbox.close());
    const receiver = await openEventReceiver();
    const budget = { requests: REQUESTS, per_s: WINDOW_S, concurrency: 64 };
    const upstream = { url: sandbox.url, api_key: 'sandbox-key', lag_price: 1_000 };
    const settings = {
      upstreams: { default: { ...upstream, budget } },
      webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
      log: { level: 'info' },
    };
    const replicaFolder = tempFolder();
    const first = await prepareMachine(replicaFolder, settings);
    const second = await prepareMachine(replicaFolder, settings);
    await first.start();
    await first.listening();
    receiver.secret = await createWebhook(first.url, receiver.url);

    // Backends that track new ids, and repeat each request at the current machine.
    let { client } = first;
    let isOver = false;
    const acknowledged = new Set<string>();
    const track = async (count: number): Promise<string> => {
      const ids = Array.from({ length: count }, () => sandbox.model.submit('data', Date.now()));
      for (;;) {
        const isTracked = await client.track(ids).then(
          () => true,
          () => false,
        );
        if (isTracked) break;
        await sleep(20);
      }
      for (const id of ids) acknowledged.add(id);
      return ids[0] ?? '';
    };
    const tracking = (async () => {
      for (; !isOver; await sleep(PAUSE_MS)) await track(BATCH);
    })();
    onTestFinished(() => {
      isOver = true;
    });

    await sleep(3_000);
    const confirmed = [...acknowledged, await track(1)];
    const newest = confirmed.at(-1) ?? '';
    while (!hasSubmission(await first.replicated(), newest)) await sleep(100);
    await sleep(between(500, 3_000));
    await first.die();
    const diedAt = Date.now();
    client = second.client;
    const lost = first.copyOfLedger();
    const restored = await second.start();
    await second.listening();
    await track(1);
    const downMs = Date.now() - diedAt;
    if (restored === undefined) throw new Error('nothing was restored');
    const missing = expectEarlierState(restored, lost);
    expect(confirmed.filter((id) => missing.submissions.includes(id))).toEqual([]);
    console.log(
      `failover: ${missing.submissions.length} of ${acknowledged.size} ids lost, down for ${(downMs / 1_000).toFixed(1)} s`,
    );
    // Backends track again what they have not seen final.
    await trackUntilAcknowledged(client, [...acknowledged]);

    while (generationOf(await second.claimed()) !== 2) await sleep(100);
    expect(await first.mayStart()).toMatchObject({
      code: ExitCode.server,
      output: expect.stringContaining('another server continues the replica'),
    });

    isOver = true;
    await tracking;
    const expected = new Map([...acknowledged].map((id) => [id, 'finalized']));
    await allDelivered(second.file, expected.size);
    // Only what was not replicated came under an id that is gone.
    const known = new Set(eventIdsOf(second.file));
    for (const id of receiver.bodies.keys())
      if (!known.has(id)) {
        expect(missing.events).toContain(id);
        receiver.bodies.delete(id);
      }
    expect(finalizedIds(second.file).toSorted()).toEqual([...expected.keys()].toSorted());
    await auditAfterFault({ server: second, expected, receiver });
    // After a graceful stop, nothing is missing in the replica.
    expect(expectEarlierState(await second.replicated(), second.file)).toEqual({
      submissions: [],
      events: [],
    });
    expect(sandbox.stats()).toMatchObject({ throttled: 0 });
    expect(sandbox.stats().maxRequestsPerWindow).toBeLessThanOrEqual(REQUESTS);
  },
);
