import {
  startProgram,
  startRedis,
  startServer,
  startWorker,
  temporaryFolder,
} from './processes.ts';

type Polling = {
  /** The state in the upstream's responses, and the number of Pending responses before it. */
  upstream: [state: 'Pending' | 'Finalized', pendingFor?: number];
  concurrency: number;
  throughRedis: boolean;
  /** Further settings of the server. */
  settings?: Record<string, unknown>;
};

/**
 * Starts the whole product with an unlimited rate of polls, sent by the server itself or through
 * Redis and one worker process.
 */
export async function startPolling({
  upstream: responses,
  concurrency,
  throughRedis,
  settings,
}: Polling) {
  const folder = temporaryFolder();
  const upstream = await startProgram<{ url: string }>('support/upstream.ts', responses);
  const { url } = upstream.hello;
  const redis = throughRedis ? await startRedis(folder.path) : undefined;
  const server = await startServer(folder.path, {
    upstreams: {
      default: {
        ...{ url, api_key: 'bench', lag_price: 1_000 },
        budget: { requests: 100_000, concurrency },
      },
    },
    ...(redis && { redis: { url: redis.url } }),
    ...settings,
  });
  const worker = redis && (await startWorker(folder.path, server));
  return {
    folder: folder.path,
    url,
    redisUrl: redis?.url ?? '',
    server,
    /** The processes that send or schedule polls. */
    pids: [server.pid, ...(worker ? [worker.pid] : [])],
    async close() {
      await worker?.stop();
      await server.stop();
      await redis?.stop();
      await upstream.stop();
      folder.remove();
    },
  };
}
