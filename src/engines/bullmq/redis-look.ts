import { disconnect, isCredentialRefusal, openRedis, waitUntilReady } from './redis.ts';
import { type RedisInfo, readRedisInfo } from './redis-info.ts';

export type RedisInspection =
  | { kind: 'seen'; info: RedisInfo }
  /** `refused`: the password, or the right to ask. `detail`: what Redis or the network said. */
  | { kind: 'away'; reason: 'unreachable' | 'refused'; detail: string };

/** One look at a Redis from outside of a server. Never rejects. */
export async function inspectRedis(url: string, limitMs: number): Promise<RedisInspection> {
  const redis = openRedis(url);
  try {
    await waitUntilReady(redis, limitMs);
    return { kind: 'seen', info: readRedisInfo(await redis.info()) };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const isLate = error instanceof Error && error.name === 'AbortError';
    const detail = isLate ? `no answer within ${limitMs / 1_000} s` : said;
    return { kind: 'away', reason: isCredentialRefusal(said) ? 'refused' : 'unreachable', detail };
  } finally {
    disconnect(redis);
  }
}
