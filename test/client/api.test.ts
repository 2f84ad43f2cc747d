import { beforeAll, expect, it, onTestFinished, vi } from 'vitest';
import { DawatchClient } from '../../src/client/index.ts';
import { type Documented, fetchDocument } from '../support/app/openapi-document.ts';
import { useApp } from '../support/app/running-app.ts';

const app = useApp();
let spec: Documented;
beforeAll(async () => {
  spec = await fetchDocument(app.url);
});

const at = '2026-01-02T03:04:05Z';
type Act = (client: DawatchClient) => Promise<unknown>;

it.each<[operationId: string, act: Act]>([
  ['trackSubmissions', (client) => client.track(['a'], { upstream: 'b', retrack: true })],
  ['trackSubmissions', (client) => client.track(['a', { submission_id: 'b', tracked_at: at }])],
  ['getSubmission', (client) => client.get('a')],
  ['waitForSubmission', (client) => client.wait('a', 5)],
  [
    'listSubmissions',
    (client) => client.list({ status: ['failed'], metadata: { a: 1 }, limit: 5 }),
  ],
  ['countSubmissions', (client) => client.count({ prefix: 'a', ended_since: at })],
  ['lookupSubmissions', (client) => client.lookup(['a'])],
  ['updateSubmission', (client) => client.update('a', { stuck_after_s: 5, metadata: null })],
  ['cancelSubmission', (client) => client.cancel('a')],
  ['getPacing', (client) => client.pacing()],
  ['getOverview', (client) => client.overview()],
  ['getUser', (client) => client.getUser({ name: 'A', email: 'a@example.com' })],
  ['getAllUsers', (client) => client.listUsers(5)],
  ['listAudit', (client) => client.audit({ action: ['users.get'], caller: 'a', since: at })],
  ['createWebhook', ({ webhooks }) => webhooks.create({ url: 'https://a.example', types: ['*'] })],
  ['listWebhooks', ({ webhooks }) => webhooks.list({ limit: 5, cursor: 'a' })],
  ['getWebhook', ({ webhooks }) => webhooks.get('a')],
  ['updateWebhook', ({ webhooks }) => webhooks.update('a', { enabled: false })],
  ['rotateWebhookSecret', ({ webhooks }) => webhooks.rotate('a', { keep_old_s: 0 })],
  ['testWebhook', ({ webhooks }) => webhooks.test('a')],
  ['testCallback', ({ webhooks }) => webhooks.testCallback('https://a.example')],
  ['deleteWebhook', ({ webhooks }) => webhooks.delete('a')],
  ['listDeliveries', ({ deliveries }) => deliveries.list({ state: 'dead', destination: 'a' })],
  ['getDelivery', ({ deliveries }) => deliveries.get(1)],
  ['replayDelivery', ({ deliveries }) => deliveries.replay(1)],
  ['replayDeadLetters', ({ deliveries }) => deliveries.replayDead({ destination: 'a' })],
  ['listAlerts', ({ alerts }) => alerts.list({ state: 'all' })],
  ['createMute', ({ alerts }) => alerts.mute({ until: at, rule: 'stuck' })],
  ['listMutes', ({ alerts }) => alerts.mutes()],
  ['deleteMute', ({ alerts }) => alerts.unmute(1)],
  ['listChannels', ({ channels }) => channels.list()],
  ['testChannel', ({ channels }) => channels.test('a')],
  ['createCredential', ({ credentials }) => credentials.create({ name: 'a', role: 'service' })],
  ['listCredentials', ({ credentials }) => credentials.list({ limit: 5 })],
  ['revokeCredential', ({ credentials }) => credentials.revoke(1)],
])('sends %s as it is documented', async (operationId, act) => {
  const [route = '', operation] =
    [...spec.operations].find(([, one]) => one.operationId === operationId) ??
    expect.fail(`there is no ${operationId}`);
  const page = { submissions: [], not_found: [], remaining: [], count: 0, next_cursor: null };
  const send = vi.fn<typeof fetch>(async () => Response.json(page));
  vi.stubGlobal('fetch', send);
  onTestFinished(() => void vi.unstubAllGlobals());
  await act(new DawatchClient({ url: 'http://dawatch', apiKey: 'a-key' }));
  expect(send).toHaveBeenCalledOnce();
  const [url, { method, body } = {}] = send.mock.calls[0] ?? [];
  const { pathname, searchParams } = new URL(String(url));
  const template = new RegExp(`^${route.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
  expect(`${method} ${pathname}`).toMatch(template);
  const parameters = operation.parameters.filter((parameter) => parameter.in === 'query');
  expect(parameters.map(({ name }) => name)).toEqual(
    expect.arrayContaining([...searchParams.keys()]),
  );
  const schema = operation.requestBody?.content['application/json']?.schema;
  const fields = Object.keys(JSON.parse(String(body ?? '{}')));
  expect(Object.keys(schema?.properties ?? {})).toEqual(expect.arrayContaining(fields));
});
