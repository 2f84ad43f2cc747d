import { expect, it } from 'vitest';
import { SCOPES } from '../../src/access/access.ts';
import { openLookups, useLookups } from '../support/app/lookups.ts';

const lookups = useLookups();

it.each([
  ['service', ['submissions:read', 'submissions:write']],
  ['user', ['users:read']],
  ['operator', ['submissions:read', 'operations:read']],
  ['admin', SCOPES],
] as const)('shows a credential of the role %s its role, scopes and name', async (role, scopes) => {
  const { status, text } = await lookups().get('/v1/whoami', lookups().tokens[role]);
  expect(status).toBe(200);
  expect(JSON.parse(text)).toEqual({ role, scopes, name: `the ${role}`, users_bearer: 'dawatch' });
});

it('shows a credential without a role its own scopes, with all that admin includes', async () => {
  const of = async (token: string) => JSON.parse((await lookups().get('/v1/whoami', token)).text);
  const { scopeTokens } = lookups();
  expect(await of(scopeTokens['webhooks:write'])).toMatchObject({
    role: null,
    scopes: ['webhooks:write'],
  });
  expect(await of(scopeTokens.admin)).toMatchObject({ role: null, scopes: SCOPES });
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
