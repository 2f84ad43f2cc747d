import { lookup } from 'node:dns';
import { iso } from '../lib/clock.ts';
import { type Check, type Finding, ok, problem, warning } from '../operations/doctor/finding.ts';
import { VERSION } from '../operations/version.ts';
import { channelTypeOf } from './channels/index.ts';
import { checkWebhookUrl } from './channels/webhook.ts';
import type { Webhook } from './delivery.ts';
import type { ReceiverResults } from './receivers-store.ts';
import type { NotificationSettings } from './settings.ts';
import { type AddressGuard, createAddressGuard } from './transport/address-guard.ts';
import { createHttpPost, type PostResult } from './transport/http-post.ts';

export function receiverChecks(
  { webhooks: settings, channels }: NotificationSettings,
  webhooks: readonly Webhook[],
  results: ReadonlyMap<string, ReceiverResults>,
  limitMs: number,
): Check[] {
  const guard = createAddressGuard({ allow: settings.allow });
  const ofWebhooks = webhooks.flatMap(({ id, url, enabled }) => {
    const name = `webhook.${id}`;
    if (!enabled) return [];
    if (url === null) return { name, run: () => [ok(name, 'the callback_url of submissions')] };
    const action = `verify that the receiver runs; to allow receivers in your network, set webhooks.allow and, without TLS, webhooks.allow_http`;
    const refusal = checkWebhookUrl(url, { allowHttp: settings.allow_http, guard });
    const refused = () => [problem(name, `nothing is sent: ${refusal}`, action)];
    return {
      name,
      run: refusal === undefined ? () => reach(name, { url, guard, limitMs, action }) : refused,
    };
  });
  const addresses = Object.entries(channels).map(([channel, config]) => {
    const name = `channel.${channel}`;
    const { address, check } = channelTypeOf(config);
    const url = address(config);
    const action = `verify that it runs, and verify the settings of channels.${channel}`;
    if (!check) return { name, run: () => reach(name, { url, limitMs, action }) };
    const run = async () => {
      const { host } = new URL(url);
      const failure = await check(config, limitMs);
      if (!failure) return [ok(name, `${host} accepts the connection; nothing is sent`)];
      const { error, answered } = failure;
      return [(answered ? problem : warning)(name, `${host}: ${error}`, action)];
    };
    return { name, run };
  });
  return [...ofWebhooks, ...addresses].map(({ name, run }) => ({
    name,
    run: async () => {
      const findings = await run();
      const newest = results.get(name.replace('.', ':'));
      return newest ? findings.map((finding) => withResult(finding, newest)) : findings;
    },
  }));
}

/** A receiver may be reachable and refuse every event. */
function withResult(finding: Finding, newest: ReceiverResults): Finding {
  const { name, status, message, action } = finding;
  const { succeededAt, failedAt, error, failingSince } = newest;
  const refused = succeededAt === failedAt ? `: ${error}` : '';
  if (failingSince === null)
    return { ...finding, message: `${message}; the newest attempt succeeded${refused}` };
  const text = `${message}; all attempts since ${iso(failingSince)} failed: ${error}`;
  const list = `npx dawatch api '/v1/deliveries?destination=${name.replace('.', ':')}' lists them`;
  return status === 'ok' ? warning(name, text, list) : { ...finding, message: text, action };
}

type Receiver = { url: string; guard?: AddressGuard; limitMs: number };

/** Gets the first page of a host, because the address may contain a secret. */
async function reach(name: string, to: Receiver & { action: string }): Promise<Finding[]> {
  const { origin, host } = new URL(to.url);
  const result = await getOnce({ ...to, url: origin });
  return [
    result.kind === 'response'
      ? ok(name, `${host} is reachable`)
      : warning(name, `${host} is unreachable: ${result.error}`, to.action),
  ];
}

/** No `guard`: any host. */
export async function getOnce({ url, guard, limitMs }: Receiver): Promise<PostResult> {
  const http = createHttpPost({
    ...(guard ? { guard } : { guard: undefined, lookup }),
    ...{ version: VERSION, timeoutMs: limitMs },
  });
  const result = await http.get({ url, signal: AbortSignal.timeout(limitMs) });
  await http.close();
  return result;
}
