import { startProgram, startRedis, startServer, startWorker, temporaryFolder } from './processes.ts';

type Polling = {
  /** What the upstream answers, and after how many pending ones. */
  upstream: [state: 'Pending' | 'Finalized', pendingFor?: number];
  concurrency: number;
  throughRedis: boolean;
  /** More of the server's. */
  settings?: Record<string, unknown>;
};

/** The whole product, which may ask as fast as it can: by itself, or through a Redis and one worker process. */
export async function startPolling({ upstream: answers, concurrency, throughRedis, settings }: Polling) {
  const folder = temporaryFolder();
  const upstream = await startProgram<{ url: string }>('support/upstream.ts', answers);
  const { url } = upstream.hello;
  const redis = throughRedis ? await startRedis(folder.path) : undefined;
  const server = await startServer(folder.path, {
    upstreams: { default: { url, api_key: 'bench', budget: { requests: 100_000, concurrency } } },
    pacing: { lag_price: 1_000 },
    ...(redis && { redis: { url: redis.url } }),
    ...settings,
  });
  const worker = redis && (await startWorker(folder.path, server));
  return {
    folder: folder.path,
    url,
    redisUrl: redis?.url ?? '',
    server,
    /** Those that ask, or have others ask. */
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
