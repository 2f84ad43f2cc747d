import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sha256 } from '../../src/access/access.ts';
import { findingsOf, settingsOf } from '../support/doctor.ts';
import { tempFolder } from '../support/temp-folder.ts';

const examine = async (env: Record<string, string>) => {
  const { findings, named } = await findingsOf(
    settingsOf({ DAWATCH_DATABASE: join(tempFolder(), 'x.db'), ...env }),
  );
  return { all: JSON.stringify(findings), credentials: named('credentials') };
};

describe.each([
  ['DAWATCH_API_KEY', 'auth.api_key', 'service'],
  ['DAWATCH_ADMIN_TOKEN', 'auth.admin_token', 'admin'],
])('%s', (variable, path, role) => {
  it.each([
    ['words', 'changeme-changeme'],
    ['words', 'secretsecretsecret'],
    ['words', 'a-service-key-for-tests'],
    ['words', 'correct-horse-battery-staple'],
    ['words', 'my-secret-api-key-2024'],
    ['words', 'P@ssw0rd-P@ssw0rd!'],
    ['words', 'DAWATCH_API_KEY_VALUE'],
    ['words', 'ThisIsMySuperSecretAdminToken'],
    ['words', 'dawatch_service_changeme0000000'],
    ['repetitions', 'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'],
    ['repetitions', 'abababababababababababab'],
    ['repetitions', '12345678901234567890'],
    ['repetitions', 'zyxwvutsrqponmlkjihgfedcba'],
    ['repetitions', `dawatch_admin_${'a'.repeat(43)}`],
    ['short', '9f86d081884c7d65'],
    ['few distinct', '0110100110010110'],
  ])('is reported if it consists of %s: %s', async (why, secret) => {
    const { all, credentials } = await examine({ [variable]: secret });
    expect(credentials).toMatchObject([
      { status: 'ok' },
      {
        status: 'warning',
        message: expect.stringContaining(`${variable} (${path}) does not look random: `),
        action: expect.stringContaining(`dawatch token create --role ${role}`),
      },
    ]);
    expect(credentials[1]?.message).toContain(why);
    expect(all).not.toContain(secret);
  });

  it.each<[string, (random: Buffer) => string]>([
    ['a token of dawatch', (random) => `dawatch_admin_${random.toString('base64url')}`],
    ['32 random bytes in base64', (random) => random.toString('base64')],
    ['16 random bytes in hex', (random) => random.toString('hex', 0, 16)],
    ['random characters after a name', (random) => `prod-service-${random.toString('hex', 0, 16)}`],
    [
      'a UUID',
      (random) =>
        random.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-'),
    ],
    ['many words', () => 'correct-horse-battery-staple-lamp-river-green'],
  ])('is not reported if it is %s', async (_, make) => {
    const secrets = Array.from({ length: 20 }, (_, n) => make(sha256(`random ${n}`)));
    for (const secret of secrets)
      expect((await examine({ [variable]: secret })).credentials, secret).toMatchObject([
        { status: 'ok' },
      ]);
  });
});

it('two equal keys are reported: a key has one role only', async () => {
  const secret = sha256('random').toString('hex');
  const { credentials } = await examine({ DAWATCH_API_KEY: secret, DAWATCH_ADMIN_TOKEN: secret });
  expect(credentials).toMatchObject([
    { status: 'ok' },
    {
      status: 'problem',
      message: expect.stringMatching(/DAWATCH_API_KEY .* and DAWATCH_ADMIN_TOKEN .* are identical/),
    },
  ]);
});
