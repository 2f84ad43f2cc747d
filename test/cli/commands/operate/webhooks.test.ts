import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/app/lookups.ts';
import { useNotifyingApp, webhookOf } from '../../../support/app/notifying-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { openReceiver } from '../../../support/servers/receiver.ts';
import { tempFolder } from '../../../support/temp-folder.ts';

const app = useNotifyingApp();
const URL = 'https://hooks.example.com/dawatch';
const OWN_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;

const run = (
  args: string[],
  { input = '', token = ADMIN_TOKEN }: { input?: string; token?: string | null } = {},
) => {
  return cli(['webhooks', ...args], {
    env: { DAWATCH_URL: app.url, DAWATCH_API_KEY: null, DAWATCH_ADMIN_TOKEN: token },
    input,
  });
};
const shown = async (id: string) => webhookOf(await app.admin('GET', `/v1/webhooks/${id}`));
/** The id in the message on stderr. */
const idIn = (stderr: string) => /^webhook (\S+),/.exec(stderr)?.[1] ?? expect.fail(stderr);

describe('create', () => {
  it('prints only the secret on stdout, which verifies the deliveries', async () => {
    const receiver = await openReceiver();
    const { code, stdout, stderr } = await run(['create', receiver.url]);
    expect(code).toBe(0);
    expect(stdout).toMatch(/^whsec_[A-Za-z0-9+/]{43}=\n$/);
    expect(stderr).toMatch(
      /^webhook wh_\w+, http:\S+: save the secret now, it cannot be shown again\n$/,
    );
    expect((await run(['test', idIn(stderr)])).code).toBe(0);
    expect((await run(['show', idIn(stderr)])).stdout).toMatch(
      /^last 24 h +100 % of 1, p95 \d+ ms$/m,
    );
    const { headers, body } = receiver.requests[0] ?? expect.fail('nothing was sent');
    expect(
      new Webhook(stdout.trim()).verify(body, headers as Record<string, string>),
    ).toMatchObject({
      type: 'webhook.test',
    });
  });

  it('accepts types, metadata as written, a description, and an initially disabled webhook', async () => {
    const metadata = 'team=billing n=5 text="5" ok=true no=null zeros=007 a=b=c list=[1] none=';
    const { stderr } = await run([
      ...`create ${URL} --type submission.failed,upstream.* --type alert.* --disabled`.split(' '),
      ...['--description', 'on call'],
      ...metadata.split(' ').flatMap((pair) => ['--metadata', pair]),
    ]);
    const texts = { team: 'billing', text: '5', zeros: '007', a: 'b=c', list: '[1]', none: '' };
    expect(await shown(idIn(stderr))).toMatchObject({
      ...{ url: URL, description: 'on call', enabled: false },
      types: ['submission.failed', 'upstream.*', 'alert.*'],
      metadata: { ...texts, n: 5, ok: true, no: null },
    });
  });

  it('takes a secret from a file or from stdin', async () => {
    const file = join(tempFolder(), 'secret');
    writeFileSync(file, `${OWN_SECRET}\n`);
    expect((await run(['create', URL, '--secret-file', file])).stdout).toBe(`${OWN_SECRET}\n`);
    expect((await run(['create', URL, '--secret-file', '-'], { input: OWN_SECRET })).stdout).toBe(
      `${OWN_SECRET}\n`,
    );
  });
});

it('create and update take further headers from a file or stdin, and show only their names', async () => {
  const secret = 'the-token-of-the-gateway';
  const file = join(tempFolder(), 'headers');
  writeFileSync(file, `Authorization: Bearer ${secret}\r\nX-Tenant:a\n\n`);
  const receiver = await openReceiver();
  const created = await run(['create', receiver.url, '--headers-file', file, '--json']);
  const { id } = JSON.parse(created.stdout) as { id: string };
  expect((await run(['test', id])).code).toBe(0);
  expect(receiver.requests[0]?.headers).toMatchObject({
    authorization: `Bearer ${secret}`,
    'x-tenant': 'a',
  });
  const updated = await run(['update', id, '--headers-file', '-'], { input: 'X-Other: b' });
  expect(updated.stdout).toMatch(/^headers +X-Other$/m);
  expect(await shown(id)).toMatchObject({ header_names: ['X-Other'] });
  expect((await run(['update', id, '--no-headers-file'])).stdout).not.toMatch(/^headers/m);
  expect(await shown(id)).toMatchObject({ header_names: [] });
  const refused = await run(['create', URL, '--headers-file', '-'], { input: secret });
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('is not Name: value') });
  for (const { stdout, stderr } of [created, updated, refused])
    expect(stdout + stderr).not.toContain(secret);
});

describe('list and show', () => {
  it('show webhooks with their states, without secrets', async () => {
    const { id } = await app.create({
      url: URL,
      metadata: { team: 'x' },
      description: 'for x',
      enabled: false,
    });
    const list = await run(['list']);
    expect(list.code).toBe(0);
    const [head, first] = list.stdout.split('\n');
    expect(head).toMatch(/^id +url +types +metadata +last 24 h +state +description$/);
    expect(first).toMatch(
      new RegExp(
        `^${id}  ${URL} +submission\\.\\* +{"team":"x"} +no deliveries +disabled \\(operator\\) +for x$`,
      ),
    );
    expect(list.stdout).toMatch(/^callbacks +- +submission\.\* +- +no deliveries +enabled/m);
    const { stdout } = await run(['show', id]);
    for (const line of [/^id +wh_/m, /^types +submission\.\*$/m, /^state +disabled \(operator\)$/m])
      expect(stdout).toMatch(line);
    expect(list.stdout + stdout).not.toContain('whsec_');
    expect(JSON.parse((await run(['show', id, '--json'])).stdout)).toEqual(await shown(id));
    expect(JSON.parse((await run(['list', '--limit', '1', '--json'])).stdout).webhooks).toEqual([
      await shown(id),
    ]);
  });
});

describe('update', () => {
  it('changes the given fields only', async () => {
    const { id } = await app.create({ url: URL, metadata: { team: 'x' }, description: 'before' });
    const change = `update ${id} --url https://new.example.com/ --no-metadata --disable`;
    const { code, stdout } = await run(change.split(' '));
    expect(code).toBe(0);
    expect(stdout).toMatch(/^url +https:\/\/new\.example\.com\/$/m);
    const after = { metadata: null, enabled: false, description: 'before' };
    expect(await shown(id)).toMatchObject(after);
    await run(['update', id, '--enable', '--description', '']);
    expect(await shown(id)).toMatchObject({ enabled: true, description: '' });
  });
});

it('rotate prints only the new secret, and sends how long the old one is kept', async () => {
  const receiver = await openReceiver();
  const { id, secret: old } = await app.create({ url: receiver.url });
  const { code, stdout } = await run(['rotate', id, '--keep-old', '0s']);
  expect([code, stdout]).toEqual([0, expect.stringMatching(/^whsec_\S+\n$/)]);
  await run(['test', id]);
  const { body, headers } = receiver.requests[0] ?? expect.fail('nothing was sent');
  const verify = (secret: string) =>
    new Webhook(secret).verify(body, headers as Record<string, string>);
  expect(verify(stdout.trim())).toBeTruthy();
  expect(() => verify(old ?? '')).toThrow();
});

describe('test', () => {
  it('exits with 3 if the delivery failed, and escapes control characters of the response', async () => {
    const receiver = await openReceiver({ status: 500, body: 'no\u001b[2J\nHTTP 200  forged' });
    const { id } = await app.create({ url: receiver.url });
    const { code, stdout } = await run(['test', id]);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^state +waiting until \S+Z$/m);
    expect(stdout).toMatch(
      /^ {2}\S+Z {2}HTTP 500 {2}\d+ ms {2}.*\n {4}no\\u001b\[2J\\u000aHTTP 200 {2}forged\n$/m,
    );
  });
});

it('delete removes a webhook', async () => {
  const { id } = await app.create({ url: URL });
  const stderr = `webhook ${id} was deleted\n`;
  expect(await run(['delete', id])).toEqual({ code: 0, stdout: '', stderr });
  expect(await run(['show', id])).toMatchObject({
    code: 2,
    stderr: `dawatch: Not found: there is no webhook ${id} (\`dawatch webhooks list\` lists the webhooks)\n`,
  });
});

describe('exits with 2 for', () => {
  it.each([
    ['a private address', 'create https://10.0.0.1/', 'body /url: the URL is not allowed'],
    ['metadata given twice', `create ${URL} --metadata a=1 --metadata a=2`, '"a" is given twice'],
    ['an empty secret', `create ${URL} --secret-file /dev/null`, '/dev/null contains no secret'],
    ['a contradiction', 'update callbacks --enable --disable', 'contradict each other'],
  ])('%s', async (_, line, message) => {
    const { code, stdout, stderr } = await run(line.split(' '));
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('no token', async () => {
    const { code, stderr } = await run(['list'], { token: null });
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(
        /^dawatch: set DAWATCH_ADMIN_TOKEN to a token: .*token create --role operator/,
      ),
    ]);
  });
});
