import { expect, it } from 'vitest';
import { ROLES } from '../../src/access/access.ts';
import { openLookups, useLookups } from '../support/app/lookups.ts';

const lookups = useLookups();

it.each(ROLES)('shows a credential of the role %s its role and name', async (role) => {
  const { status, text } = await lookups().get('/v1/whoami', lookups().tokens[role]);
  expect([status, JSON.parse(text)]).toEqual([
    200,
    { role, name: `the ${role}`, users_bearer: 'dawatch' },
  ]);
});

it("reports that user lookups require the upstream's own token if tokens are forwarded", async () => {
  const forwarding = await openLookups({ bearer: null });
  const { text } = await forwarding.get('/v1/whoami', forwarding.tokens.service);
  expect(JSON.parse(text)).toMatchObject({ users_bearer: 'upstream' });
});

it("does not accept the upstream's own tokens", async () => {
  const forwarding = await openLookups({ bearer: null });
  expect(await forwarding.get('/v1/whoami', 'sandbox-admin-token')).toMatchObject({ status: 401 });
});
