import type { z } from 'zod';
import { address, section } from '../operations/config/section-values.ts';
import type { PollingSettings } from '../polling/settings.ts';

export const redisSection = section({
  url: address('redis', 'rediss')
    .refine(
      (text) => /^[a-z]+:\/\/[^/?]+(?:\/\d*)?$/i.test(text),
      'must end with its host, or with the number of a database: redis://redis:6379/1',
    )
    // ioredis connects without TLS to REDISS://.
    .overwrite((text) => text.replace(/^\w+/, (scheme) => scheme.toLowerCase()))
    .optional()
    .describe(
      'Redis server for workers and queues. rediss:// uses TLS; NODE_EXTRA_CA_CERTS adds certificate authorities',
    ),
});

export type RedisConfig = z.output<typeof redisSection>;

export type WorkerSettings = PollingSettings & { redis: RedisConfig };
