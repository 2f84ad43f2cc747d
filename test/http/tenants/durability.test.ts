import { setTimeout } from 'node:timers/promises';
import { expect, it, vi } from 'vitest';
import { openTenants, track } from '../../support/app/tenants.ts';
import { holdSyncs } from '../../support/ledger/held-syncs.ts';

/** Longer than a response takes that waits for nothing. */
const A_WHILE_MS = 200;

/** Returns whether the promise is settled. */
function observed(promise: Promise<unknown>) {
  const seen = { isSettled: false };
  const settle = () => {
    seen.isSettled = true;
  };
  promise.then(settle, settle);
  return seen;
}

it.each([
  ['PATCH', '', { name: 'renamed' }],
  ['POST', '/rotate', {}],
  ['DELETE', '', undefined],
])(
  '%s /v1/credentials/{id}%s waits for the audit of the tenant to which the credential belongs',
  async (method, path, body) => {
    const world = await openTenants();
    const admin = world.client(null);
    const { credentials } = (await admin.json('/v1/credentials')) as { credentials: { id: number; tenant: string }[] };
    const { id } = credentials.find(({ tenant }) => tenant === 'a') ?? { id: 0 };
    const syncs = holdSyncs(world.ledgerOf('a'));
    const change = admin.send(`/v1/credentials/${id}${path}`, { method, body });
    const seen = observed(change);
    await vi.waitUntil(() => syncs.isHolding());
    await setTimeout(A_WHILE_MS);
    expect(seen.isSettled).toBe(false);
    syncs.release();
    expect((await change).status).toBeLessThan(300);
  },
);

it('the list of tenants waits for the disk of each, because it shows their counts', async () => {
  const world = await openTenants();
  const syncs = holdSyncs(world.ledgerOf('b'));
  const tracked = track(world.client('b'), 'one');
  await vi.waitUntil(() => syncs.isHolding());
  const list = world.client(null).send('/v1/tenants');
  const seen = observed(list);
  await setTimeout(A_WHILE_MS);
  expect(seen.isSettled).toBe(false);
  syncs.release();
  expect((await list).text).toContain('"open":1');
  expect((await tracked).status).toBe(202);
});
