import { describe, expect, it } from 'vitest';
import { call } from '../support/app/http-calls.ts';
import { useLookups } from '../support/app/lookups.ts';

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
    const { tokens } = lookups();
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
    expect(await shown(tokens.admin)).toEqual([SECRET_URL, SECRET_URL]);
    expect((await read('/v1/webhooks/callbacks', tokens.operator)).url).toBeNull();
  });

  it('sees the counts of /readyz, which a service does not', async () => {
    const { tokens } = lookups();
    expect((await read('/readyz', tokens.operator)).upstreams.default).toHaveProperty('tracked');
    expect((await read('/readyz', tokens.service)).upstreams.default).not.toHaveProperty('tracked');
  });
});

it('a refusal names the roles that the route permits and that of the credential', async () => {
  const { text } = await send('GET', '/v1/webhooks', lookups().tokens.user);
  expect(JSON.parse(text).detail).toBe(
    'this needs the role operator or admin; the credential has the role user',
  );
});
