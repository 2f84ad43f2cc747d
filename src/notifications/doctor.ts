import { lookup } from 'node:dns';
import { type Check, type Finding, ok, problem, warning } from '../operations/doctor/finding.ts';
import { VERSION } from '../operations/version.ts';
import { checkWebhookUrl } from './channels/webhook.ts';
import type { ChannelConfig, NotificationSettings } from './settings.ts';
import { type AddressGuard, createAddressGuard } from './transport/address-guard.ts';
import { createHttpPost } from './transport/http-post.ts';
import type { Webhook } from './webhook.ts';

/** Returns the checks of the receivers. Disabled and failing webhooks are the subject of alerts. */
export function receiverChecks(
  {
    webhooks: settings,
    channels,
    heartbeat,
  }: NotificationSettings & { heartbeat: { url?: string | undefined } },
  webhooks: readonly Webhook[],
  limitMs: number,
): Check[] {
  const guard = createAddressGuard({ allow: settings.allow });
  const ofWebhooks = webhooks.flatMap(({ id, url, enabled }) => {
    if (!enabled || url === null) return [];
    const name = `webhook.${id}`;
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
    if (config.type === 'email') return { name, run: () => checkMail(channel, config, limitMs) };
    const action = `verify that it runs, and verify channels.${channel}.url`;
    return { name, run: () => reach(name, { url: config.url, limitMs, action }) };
  });
  const { url } = heartbeat;
  if (url !== undefined) {
    const action = 'verify that it runs, and verify heartbeat.url';
    addresses.push({ name: 'heartbeat', run: () => reach('heartbeat', { url, limitMs, action }) });
  }
  return [...ofWebhooks, ...addresses];
}

/**
 * Checks that a host responds to GET of its first page. The address itself, which may contain a
 * secret, is not called. Without `guard` every address is allowed.
 */
async function reach(
  name: string,
  to: { url: string; guard?: AddressGuard; limitMs: number; action: string },
): Promise<Finding[]> {
  const { origin, host } = new URL(to.url);
  const http = createHttpPost({
    ...(to.guard ? { guard: to.guard } : { guard: undefined, lookup }),
    ...{ version: VERSION, now: Date.now, timeoutMs: to.limitMs },
  });
  const result = await http.get({ url: origin, signal: AbortSignal.timeout(to.limitMs) });
  await http.close();
  return [
    result.kind === 'response'
      ? ok(name, `${host} is reachable`)
      : warning(name, `${host} is unreachable: ${result.error}`, to.action),
  ];
}

/** Checks that a mail server accepts the session of a channel, with its login. Sends no mail. */
async function checkMail(
  channel: string,
  settings: Extract<ChannelConfig, { type: 'email' }>,
  limitMs: number,
): Promise<Finding[]> {
  const name = `channel.${channel}`;
  // Loaded on demand, because importing it would slow every start.
  const { checkMailServer } = await import('./channels/email.ts');
  const { host } = new URL(settings.smtp_url);
  const action = `verify smtp_url, tls and tls_ca_file of channels.${channel}`;
  try {
    const failure = await checkMailServer(settings, limitMs);
    if (!failure) return [ok(name, `${host} accepts the connection; no mail is sent`)];
    const { error, answered } = failure;
    return [(answered ? problem : warning)(name, `${host}: ${error}`, action)];
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    return [problem(name, `channels.${channel}.tls_ca_file is unusable: ${reason}`, action)];
  }
}
