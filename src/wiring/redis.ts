import type { Config } from '../operations/config/schema.ts';
import { StartError } from '../operations/config/start-error.ts';
import { problemOfTls } from '../redis/redis.ts';

export type ConfiguredRedis = Config['redis'] & { url: string };

/**
 * Returns undefined if no Redis is configured. Throws a StartError if a file of TLS is unusable.
 */
export function redisOf({ redis }: Pick<Config, 'redis'>): ConfiguredRedis | undefined {
  const { url } = redis;
  if (url === undefined) return undefined;
  const problem = problemOfTls(redis);
  if (problem !== undefined) throw new StartError(problem);
  return { ...redis, url };
}
