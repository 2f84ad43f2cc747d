import type { RedisServer } from './queues.ts';

/** Opens none if no Redis is configured. Throws StartError. */
export async function openRedisQueues(server: RedisServer) {
  if (server.config.redis.url === undefined) return {};
  // Loaded on demand: importing BullMQ would slow every start (row `start` of `npm run bench`).
  const { openQueues } = await import('./queues.ts');
  return openQueues(server);
}
