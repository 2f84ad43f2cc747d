import { z } from 'zod';
import type { TypedServer } from '../ports.ts';
import { operations } from '../problems.ts';
import type { TenantDirectory } from '../tenants/tenant.ts';
import { statusCountsSchema } from './overview.ts';

const tenantSchema = z
  .object({
    name: z.string(),
    max_open: z.int().nullable().describe('Maximum number of open submissions; null: no limit'),
    requests_per_minute: z
      .int()
      .nullable()
      .describe('Requests per minute of all its credentials together; null: no limit'),
    weight: z.number().describe('Share of an exhausted request budget, relative to the weights of the others'),
    open: z.int().describe('Open submissions, which count for max_open'),
    submissions: statusCountsSchema,
    deliveries: z
      .object({ waiting: z.int(), dead: z.int().describe('Dead letters') })
      .describe('Deliveries that wait for an attempt, and dead letters')
      .meta({ id: 'TenantDeliveries' }),
    ledger: z.enum(['ok', 'not_writable']).meta({ id: 'TenantLedgerState' }),
  })
  .describe('A tenant of the settings')
  .meta({ id: 'Tenant' });

const tenantsSchema = z
  .object({ tenants: z.array(tenantSchema).describe('In the order of the settings') })
  .describe('The tenants of this server')
  .meta({
    id: 'Tenants',
    examples: [
      {
        tenants: [
          {
            name: 'acme',
            max_open: 1_000,
            requests_per_minute: null,
            weight: 1,
            open: 12,
            submissions: {
              tracking: 2,
              pending: 10,
              failing: 0,
              finalized: 480,
              failed: 0,
              unknown: 1,
              rejected: 0,
              expired: 0,
              cancelled: 0,
            },
            deliveries: { waiting: 0, dead: 0 },
            ledger: 'ok',
          },
        ],
      },
    ],
  });

const OPERATIONS = operations('operations', {
  listTenants: {
    summary: 'List the tenants with their quotas and counts',
    description:
      'Needs a credential without a tenant. Tenants are created in the settings (`tenants`). With the header `dawatch-tenant`, an ' +
      'admin without a tenant acts in the named tenant on the other routes.',
    querystring: z.strictObject({}),
    response: { 200: tenantsSchema },
  },
});

export function registerTenants(app: TypedServer, { tenants }: { tenants: Pick<TenantDirectory, 'all'> }): void {
  app.get(
    '/v1/tenants',
    {
      config: { isExpensive: true, scopes: ['operations:read'], concernsAllTenants: true },
      schema: OPERATIONS.listTenants,
    },
    async () => ({
      tenants: tenants.all.map(({ tenant: { name, services }, settings }): z.output<typeof tenantSchema> => {
        const { ledger, watcher } = services;
        const { submissions, deliveries } = ledger.stats.counts(0);
        const { waiting, dead } = deliveries;
        return {
          name,
          max_open: settings.max_open || null,
          requests_per_minute: settings.requests_per_minute || null,
          weight: settings.weight,
          open: ledger.quota.open,
          submissions,
          deliveries: { waiting, dead },
          ledger: watcher.health().ledgerWritable ? 'ok' : 'not_writable',
        };
      }),
    }),
  );
}
