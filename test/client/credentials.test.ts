import { expect, expectTypeOf, it } from 'vitest';
import type { z } from 'zod';
import type {
  credentialPatchSchema,
  credentialSchema,
  credentialWithSecretSchema,
  newCredentialSchema,
} from '../../src/access/credentials-routes.ts';
import type { Role as ServerRole, Scope as ServerScope } from '../../src/access/scopes.ts';
import {
  type Credential,
  type CredentialPatch,
  type CredentialWithSecret,
  DawatchClient,
  type NewCredential,
  type Role,
  type Scope,
} from '../../src/client/index.ts';
import { ADMIN_TOKEN } from '../support/app/lookups.ts';
import { API_KEY, useApp } from '../support/app/running-app.ts';

const app = useApp({ adminToken: ADMIN_TOKEN });
const clientOf = (token: string) => new DawatchClient({ url: app.url, token });

it("has the types of the server's requests and responses", () => {
  expectTypeOf<Role>().toEqualTypeOf<ServerRole>();
  expectTypeOf<Scope>().toEqualTypeOf<ServerScope>();
  expectTypeOf<z.output<typeof credentialSchema>>().toEqualTypeOf<Credential>();
  expectTypeOf<z.output<typeof credentialWithSecretSchema>>().toExtend<CredentialWithSecret>();
  expectTypeOf<keyof NewCredential>().toEqualTypeOf<keyof z.input<typeof newCredentialSchema>>();
  expectTypeOf<keyof CredentialPatch>().toEqualTypeOf<
    keyof z.input<typeof credentialPatchSchema>
  >();
});

it('creates, lists, changes, rotates and revokes a credential', async () => {
  const { credentials } = clientOf(ADMIN_TOKEN);
  const { secret, ...made } = await credentials.create({
    name: 'jobs',
    scopes: ['submissions:read', 'webhooks:write'],
  });
  expect((await clientOf(secret).webhooks.list()).webhooks).toHaveLength(1);
  expect(await credentials.get(made.id)).toMatchObject({
    id: made.id,
    role: null,
    scopes: made.scopes,
  });
  const [listed] = (await credentials.list({ limit: 1 })).credentials;
  expect(listed).toMatchObject({ id: made.id, state: 'valid' });
  const expires_at = new Date(Date.now() + 3_600_000).toISOString();
  expect(await credentials.update(made.id, { name: 'jobs 2', expires_at })).toMatchObject({
    name: 'jobs 2',
    expires_at,
  });
  const rotated = await credentials.rotate(made.id, { overlap_s: 60 });
  expect(rotated.replaced_secrets).toHaveLength(1);
  for (const token of [secret, rotated.secret])
    expect((await clientOf(token).webhooks.list()).webhooks).toHaveLength(1);
  expect(await credentials.revoke(made.id)).toBeUndefined();
  await expect(credentials.rotate(made.id)).rejects.toMatchObject({
    name: 'ApiError',
    status: 409,
  });
  await expect(clientOf(rotated.secret).webhooks.list()).rejects.toMatchObject({ status: 401 });
});

it('throws an ApiError without the role admin', async () => {
  await expect(clientOf(API_KEY).credentials.list()).rejects.toMatchObject({
    name: 'ApiError',
    status: 403,
    message: expect.stringContaining('this needs the scope admin'),
  });
});
