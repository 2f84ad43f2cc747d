import { z } from 'zod';
import { httpUrl, seconds, section } from '../operations/config/section-values.ts';

export const alertsSection = section({
  failures: z
    .number()
    .int()
    .min(1)
    .default(10)
    .describe(
      'Number of submissions of one upstream that fail without recovering within 10 minutes',
    ),
}).describe('Alert rules');

export const heartbeatSection = section({
  url: httpUrl
    .optional()
    .describe(
      'Address that the server calls with GET while it works, such as one of Healthchecks. A user and a password are sent as Basic authorization',
    ),
  every_s: seconds(60, 1).describe('Seconds between two calls'),
}).describe("Dead man's switch");

export type AlertSettings = {
  alerts: z.output<typeof alertsSection>;
  heartbeat: z.output<typeof heartbeatSection>;
  server: { public_url?: string | undefined };
};
