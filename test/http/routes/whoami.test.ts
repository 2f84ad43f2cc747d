import { expect, it } from 'vitest';
import { openLookups, useLookups } from '../../support/app/lookups.ts';

const lookups = useLookups();

it.each(['service', 'user', 'admin'] as const)('shows a credential of the role %s its role and name', async (role) => {
  const { status, text } = await lookups().get('/v1/whoami', lookups().tokens[role]);
  expect(status).toBe(200);
  expect(JSON.parse(text)).toEqual({ role, name: `the ${role}`, users_bearer: 'dawatch' });
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
