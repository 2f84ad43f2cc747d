import { describe, expect, it } from 'vitest';
import { rightsOfScopes, sha256, toStoredRights } from '../../src/access/access.ts';
import { credentialsOf, isOwnToken, makeToken } from '../../src/access/credentials-store.ts';
import { call } from '../support/app/http-calls.ts';
import { useLookups } from '../support/app/lookups.ts';
import { openLedger } from '../support/ledger/ledger-file.ts';

const SECRET_URL = 'https://hooks.example.com:8443/services/T0/secret?token=hidden';
const lookups = useLookups();
const send = (method: string, path: string, token: string, body?: object) =>
  call(lookups().url, path, {
    method,
    headers: { 'x-api-key': [], authorization: `Bearer ${token}` },
    ...(body && { body }),
  });
const read = async (path: string, token: string) =>
  JSON.parse((await send('GET', path, token)).text);

describe('an operator', () => {
  it('sees of the address of a webhook only scheme, host and port', async () => {
    const { tokens, scopeTokens } = lookups();
    const { id } = JSON.parse(
      (await send('POST', '/v1/webhooks', tokens.admin, { url: SECRET_URL })).text,
    );
    const shown = async (token: string) => [
      (await read(`/v1/webhooks/${id}`, token)).url,
      (await read('/v1/webhooks', token)).webhooks.find(
        (webhook: { id: string }) => webhook.id === id,
      ).url,
    ];
    const origin = 'https://hooks.example.com:8443';
    expect(await shown(tokens.operator)).toEqual([origin, origin]);
    expect(await shown(scopeTokens['operations:read'])).toEqual([origin, origin]);
    expect(await shown(scopeTokens['webhooks:write'])).toEqual([SECRET_URL, SECRET_URL]);
    expect(await shown(tokens.admin)).toEqual([SECRET_URL, SECRET_URL]);
    expect((await read('/v1/webhooks/callbacks', tokens.operator)).url).toBeNull();
  });

  it('sees of a callback_url only scheme, host and port', async () => {
    const { tokens } = lookups();
    await send('POST', '/v1/submissions', tokens.admin, {
      submission_id: 'with-callback',
      callback_url: SECRET_URL,
    });
    expect(await read('/v1/submissions/with-callback', tokens.operator)).toMatchObject({
      callback_url: 'https://hooks.example.com:8443',
    });
  });

  it('sees the counts of /readyz and reports by credential, which a service does not', async () => {
    const { tokens } = lookups();
    expect((await read('/readyz', tokens.operator)).upstreams.default).toHaveProperty('tracked');
    expect((await read('/readyz', tokens.service)).upstreams.default).not.toHaveProperty('tracked');
    const report = (token: string) => send('GET', '/v1/reports?group_by=credential', token);
    expect([(await report(tokens.operator)).status, (await report(tokens.service)).status]).toEqual(
      [200, 403],
    );
  });

  it('reads submissions in the form of the upstream', async () => {
    const { tokens, scopeTokens } = lookups();
    // The upstream does not know it.
    const id = '00000000-0000-4000-8000-000000000021';
    for (const token of [tokens.operator, scopeTokens['submissions:read']])
      expect((await send('GET', `/v1/get_submission_info?submission_id=${id}`, token)).status).toBe(
        404,
      );
  });
});

it('a refusal names the scopes that the route needs and those of the credential', async () => {
  const { tokens, scopeTokens } = lookups();
  const detail = async (token: string) =>
    JSON.parse((await send('GET', '/v1/webhooks', token)).text).detail;
  expect(await detail(tokens.user)).toBe(
    'this needs the scope operations:read or webhooks:write; the role user has users:read',
  );
  expect(await detail(scopeTokens['submissions:write'])).toBe(
    'this needs the scope operations:read or webhooks:write; this credential has submissions:write',
  );
});

it('a token with scopes of its own has the form of a token of dawatch', () => {
  const token = makeToken(null);
  expect(token).toMatch(/^dawatch_scoped_/);
  expect(isOwnToken(token)).toBe(true);
});

it('a stored credential with rights that this version does not know is not valid', () => {
  const { credentials: store } = openLedger();
  const { find } = credentialsOf({ api_key: undefined, admin_token: undefined }, store, {
    now: () => 1,
  });
  store.add(
    { hash: sha256('a'), ...toStoredRights(rightsOfScopes(['users:read'])), name: 'known' },
    0,
  );
  store.add({ hash: sha256('b'), role: 'owner', name: 'newer role' }, 0);
  store.add(
    { hash: sha256('c'), role: 'scoped', scopes: 'users:read users:write', name: 'newer scope' },
    0,
  );
  expect(find(sha256('a'))).toMatchObject({ name: 'known', scopes: new Set(['users:read']) });
  expect([find(sha256('b')), find(sha256('c'))]).toEqual([undefined, undefined]);
});
