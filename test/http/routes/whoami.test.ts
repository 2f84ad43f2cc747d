import { expect, it } from 'vitest';
import { openLookups, useLookups } from '../../support/lookups.ts';

const lookups = useLookups();

it.each(['service', 'user', 'admin'] as const)('tells a credential of the role %s who it is', async (role) => {
  const { status, text } = await lookups().get('/v1/whoami', lookups().tokens[role]);
  expect(status).toBe(200);
  expect(JSON.parse(text)).toEqual({ role, name: `the ${role}`, users_bearer: 'dawatch' });
});

it("says that lookups of users want the upstream's own token where those are forwarded", async () => {
  const forwarding = await openLookups({ bearer: null });
  const { text } = await forwarding.get('/v1/whoami', forwarding.tokens.service);
  expect(JSON.parse(text)).toMatchObject({ users_bearer: 'upstream' });
});

it("does not know the upstream's own tokens, which are forwarded unseen", async () => {
  const forwarding = await openLookups({ bearer: null });
  expect(await forwarding.get('/v1/whoami', 'sandbox-admin-token')).toMatchObject({ status: 401 });
});
