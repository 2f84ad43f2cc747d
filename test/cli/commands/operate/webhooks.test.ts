import { Webhook } from 'standardwebhooks';
import { describe, expect, it } from 'vitest';
import { ADMIN_TOKEN } from '../../../support/app/lookups.ts';
import {
  acceptedOf,
  useNotifyingApp,
  webhookDetailsOf,
} from '../../../support/app/notifying-app.ts';
import { cli } from '../../../support/processes/cli.ts';
import { openReceiver } from '../../../support/servers/receiver.ts';

const app = useNotifyingApp();
const URL = 'https://hooks.example.com/dawatch';

const run = (
  args: string[],
  { input = '', token = ADMIN_TOKEN }: { input?: string; token?: string | null } = {},
) => {
  return cli(['webhooks', ...args], {
    env: { DAWATCH_URL: app.url, DAWATCH_API_KEY: null, DAWATCH_ADMIN_TOKEN: token },
    input,
  });
};
const shown = async (id: string) => webhookDetailsOf(await app.admin('GET', `/v1/webhooks/${id}`));
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
    const path = `/v1/webhooks/${idIn(stderr)}/test`;
    const { id } = acceptedOf(await app.admin('POST', path));
    await app.tried(id);
    const { headers, body } = receiver.requests[0] ?? expect.fail('nothing was sent');
    expect(
      new Webhook(stdout.trim()).verify(body, headers as Record<string, string>),
    ).toMatchObject({
      type: 'webhook.test',
    });
  });

  it('accepts types, metadata as written, and a description', async () => {
    const metadata = 'team=billing n=5 text="5" ok=true no=null zeros=007 a=b=c list=[1] none=';
    const { stderr } = await run([
      ...`create ${URL} --type submission.failed,upstream.* --type alert.*`.split(' '),
      ...['--description', 'on call'],
      ...metadata.split(' ').flatMap((pair) => ['--metadata', pair]),
    ]);
    const texts = { team: 'billing', text: '5', zeros: '007', a: 'b=c', list: '[1]', none: '' };
    expect(await shown(idIn(stderr))).toMatchObject({
      ...{ url: URL, description: 'on call', enabled: true },
      types: ['submission.failed', 'upstream.*', 'alert.*'],
      metadata: { ...texts, n: 5, ok: true, no: null },
    });
  });
});

describe('exits with 2 for', () => {
  it.each([
    ['a private address', 'create https://10.0.0.1/', 'body /url: the URL is not allowed'],
    ['metadata given twice', `create ${URL} --metadata a=1 --metadata a=2`, '"a" is given twice'],
  ])('%s', async (_, line, message) => {
    const { code, stdout, stderr } = await run(line.split(' '));
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain(message);
  });

  it('no token', async () => {
    const { code, stderr } = await run(['create', URL], { token: null });
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(
        /^dawatch: set DAWATCH_ADMIN_TOKEN to a token: .*token create --role admin/,
      ),
    ]);
  });
});
