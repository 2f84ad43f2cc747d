import { expect, onTestFinished } from 'vitest';
import type { TrackOptions } from '../../../src/client/index.ts';
import type { SandboxOptionsInput } from '../../../src/sandbox/options.ts';
import { startSandbox } from '../../../src/sandbox/server.ts';
import {
  prepareServer,
  prepareWorker,
  trackUntilAcknowledged,
} from '../../support/processes/killable-server.ts';
import { seeded } from '../../support/seed.ts';
import { allDelivered, createWebhook } from '../../support/servers/deliveries.ts';
import { openEventReceiver } from '../../support/servers/event-receiver.ts';
import { tempFolder } from '../../support/temp-folder.ts';
import { auditAfterFault } from './audit.ts';

type WorldOptions = {
  sandbox?: SandboxOptionsInput;
  /** Replaces the sandbox, for example by a hostile upstream. */
  upstreamUrl?: string;
  /** Settings in addition to the default ones, merged by section; as in config/dawatch.yaml. */
  settings?: Record<string, unknown>;
  /** The section `server` of the settings; the port is chosen. */
  server?: Record<string, unknown>;
  receiver?: Parameters<typeof openEventReceiver>[0];
  /** Further settings of the default upstream, such as its timeout. */
  upstream?: Record<string, unknown>;
  /** Further upstreams. */
  upstreams?: Record<string, unknown>;
  redisUrl?: string;
  /** The address of Redis for the workers, if it differs. */
  workerRedisUrl?: string;
  /** Further settings of the section `redis`. */
  redis?: Record<string, unknown>;
  workers?: number;
  /** The folder of the ledger; a new one by default. */
  folder?: string;
};

export const UPSTREAM = {
  api_key: 'sandbox-key',
  lag_price: 1_000,
  budget: { requests: 400, per_s: 1, concurrency: 64 },
};

/**
 * The product as in production: `dawatch serve` in its own process, with the sandbox as its
 * upstream and as the node of its chain, which must confirm each finalized submission, a receiver
 * of every event, and workers if a Redis is given. Submissions are final within a second or two.
 * Everything stops when the test ends.
 */
export async function prepareWorld(name: string, options: WorldOptions = {}) {
  const { settings = {}, redisUrl, workerRedisUrl = redisUrl } = options;
  const { workers: workerCount = 0, folder = tempFolder() } = options;
  const chance = seeded(name);
  const sandbox = await startSandbox({
    options: { seed: chance.seed, speed: 40, errorRate: 0.1, ...options.sandbox },
  });
  onTestFinished(() => sandbox.close());
  const receiver = await openEventReceiver(options.receiver);
  const { upstreamUrl = sandbox.url } = options;
  const isVerified = upstreamUrl === sandbox.url;
  const chain = { urls: [sandbox.url.replace('http', 'ws')], verify: 'require', verify_data: true };
  const common = {
    upstreams: {
      default: {
        url: upstreamUrl,
        ...(isVerified && { chain }),
        ...UPSTREAM,
        ...options.upstream,
      },
      ...options.upstreams,
    },
    ...(redisUrl && { redis: { url: redisUrl, ...options.redis } }),
  };
  const server = await prepareServer(folder, {
    ...common,
    webhooks: { allow: ['127.0.0.0/8'], allow_http: true },
    log: { level: 'info' },
    server: options.server,
    ...settings,
  });
  const workers = Array.from({ length: workerCount }, (_, index) =>
    prepareWorker(folder, `worker-${index}`, {
      ...common,
      ...(redisUrl && { redis: { url: workerRedisUrl, ...options.redis } }),
      log: { level: 'info' },
    }),
  );
  /** The correct final status of every acknowledged id. */
  const expected = new Map<string, string>();
  const submit = (count: number) =>
    Array.from({ length: count }, () => sandbox.model.submit('data', Date.now()));
  return {
    ...chance,
    folder,
    sandbox,
    server,
    workers,
    receiver,
    expected,
    /** Returns new ids that the upstream knows, and that are not tracked yet. */
    submit,
    /** Starts all processes, with a webhook for every event. */
    async start(how: Parameters<typeof server.start>[0] = {}): Promise<void> {
      server.start(how);
      for (const worker of workers) worker.start();
      await server.listening();
      if (!receiver.secret) receiver.secret = await createWebhook(server.url, receiver.url);
    },
    /** Tracks new ids, with retries until they are acknowledged. */
    async track(count: number, options?: TrackOptions): Promise<string[]> {
      const ids = submit(count);
      await trackUntilAcknowledged(server.client, ids, options);
      for (const id of ids) expected.set(id, 'finalized');
      return ids;
    },
    /** Waits until these submissions are finalized. */
    async untilFinal(ids: readonly string[]): Promise<void> {
      const open = async () => {
        const { submissions } = await server.client.lookup(ids);
        return submissions.filter(({ status }) => status !== 'finalized');
      };
      await expect.poll(open, { interval: 100 }).toEqual([]);
    },
    /**
     * Waits until all submissions are final and delivered, and audits the running server, which it
     * stops.
     */
    async expectSurvived(limits: { memoryMiB?: number } = {}): Promise<void> {
      await server.listening();
      await allDelivered(server.file, expected.size);
      for (const worker of workers)
        expect(await worker.stop(), worker.lines.slice(-3).join('\n')).toBe(0);
      await auditAfterFault({ server, expected, receiver, isVerified, ...limits });
    },
  };
}
