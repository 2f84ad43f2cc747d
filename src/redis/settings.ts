import { z } from 'zod';
import { section } from '../operations/config/section-values.ts';
import type { PollingSettings } from '../polling/settings.ts';

export const redisSection = section({
  url: z
    .url({ protocol: /^rediss?$/, error: 'must be a redis:// or rediss:// address' })
    .optional()
    .describe(
      'Redis server for BullMQ: workers poll the upstream, the queue dawatch-submissions accepts submissions, and every event becomes a job of dawatch-events. rediss:// uses TLS; NODE_EXTRA_CA_CERTS adds certificate authorities',
    ),
});

export type RedisConfig = z.output<typeof redisSection>;

export type WorkerSettings = PollingSettings & { redis: RedisConfig };
