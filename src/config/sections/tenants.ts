import { z } from 'zod';
import { byName, count, section } from './values.ts';

const tenant = section({
  max_open: count(0, 0).describe(
    'Maximum number of open submissions. A tracking request that would exceed it is refused with 429 as a whole; 0: no limit',
  ),
  requests_per_minute: count(0, 0).describe(
    'Requests per minute of all credentials of the tenant together, besides `limits.requests_per_minute` of each; 0: no limit',
  ),
  weight: z
    .number()
    .min(0.01)
    .max(1_000)
    .default(1)
    .describe(
      'Share of the exhausted request budget of an upstream, relative to the weights of other tenants. Submissions without a tenant have the weight 1',
    ),
});

export const tenantsSection = byName(tenant)
  .default({})
  .describe('Tenants by name. Each has submissions, events, webhooks and reports of its own, in a ledger of its own');

export type TenantConfig = z.output<typeof tenant>;
