import { lookup } from 'node:dns';
import { checkWebhookUrl } from '../../notifications/channels/webhook.ts';
import { channelDestination, webhookDestination } from '../../notifications/delivery.ts';
import { createAddressGuard } from '../../notifications/transport/address-guard.ts';
import { CALLBACKS_ID, type Webhook } from '../../notifications/webhook.ts';
import type { ChannelConfig, Config } from '../config/schema.ts';
import { type Finding, ok, problem, warning } from './finding.ts';
import { reach } from './reach.ts';

type Limits = { limitMs: number; signal: AbortSignal };
type DeadLetters = ReadonlyMap<string, number>;

/** Checks that the receiver of a webhook can be connected to. Sends nothing. */
export async function checkWebhook(
  webhook: Webhook,
  { webhooks, dead, limitMs, signal }: Limits & { webhooks: Config['webhooks']; dead: DeadLetters },
): Promise<Finding[]> {
  const { id, url, enabled, disabledReason, failingSince } = webhook;
  const about = `webhook.${id}`;
  const replay = `dawatch deliveries replay --destination webhook:${id} --since 24h`;
  const letters = deadLetters(about, dead.get(webhookDestination(id)) ?? 0, replay);
  if (!enabled) return [disabled(about, id, disabledReason), ...letters];
  if (url === null) return letters;
  const guard = createAddressGuard({ allow: webhooks.allow });
  const host = URL.parse(url)?.host ?? '?';
  const refusal = checkWebhookUrl(url, { allowHttp: webhooks.allow_http, guard });
  const advice = `dawatch webhooks update ${id} --url …; to allow receivers in your network, set webhooks.allow`;
  if (refusal !== undefined)
    return [problem(about, `nothing is sent to ${host}: ${refusal}`, advice), ...letters];
  const reached = await reach(url, { guard, timeoutMs: limitMs, signal });
  if (reached.kind === 'not_reached') {
    const action =
      reached.cause === 'guarded'
        ? advice
        : 'verify that the receiver runs; pending deliveries are retried for three days';
    return [warning(about, `${host} is unreachable: ${reached.error}`, action), ...letters];
  }
  if (failingSince === null) return [ok(about, `${host} is reachable`), ...letters];
  const message = `${host} is reachable, but deliveries have failed since ${new Date(failingSince).toISOString()}`;
  return [warning(about, message, `dawatch webhooks test ${id} shows its response`), ...letters];
}

function disabled(about: string, id: string, reason: Webhook['disabledReason']): Finding {
  if (reason === 'operator') return ok(about, 'disabled by an operator');
  const why =
    reason === 'gone' ? 'its receiver responded with 410 (Gone)' : 'its deliveries failed for days';
  const action = `dawatch webhooks update ${id} --enable, or dawatch webhooks delete ${id}`;
  return warning(about, `disabled, because ${why}`, action);
}

/** Reports dead letters of callback addresses. */
export function checkCallbacks(dead: DeadLetters): Finding[] {
  const counts = [...dead]
    .filter(([destination]) => destination.startsWith('callback:'))
    .map(([, count]) => count);
  const total = counts.reduce((sum, count) => sum + count, 0);
  return deadLetters(`webhook.${CALLBACKS_ID}`, total, `dawatch deliveries list --state dead`);
}

/**
 * Checks that a channel can be connected to. Its address is set by the operator and may be private.
 */
export async function checkChannel(
  name: string,
  channel: ChannelConfig,
  { dead, limitMs, signal }: Limits & { dead: DeadLetters },
): Promise<Finding[]> {
  const about = `channel.${name}`;
  const url = channel.type === 'email' ? channel.smtp_url : channel.url;
  const { host } = new URL(url);
  const guard = createAddressGuard({ allow: ['0.0.0.0/0', '::/0'] });
  const reached = await reach(url, { guard, timeoutMs: limitMs, signal, lookup });
  const destination = channelDestination(name);
  const replay = `dawatch deliveries replay --destination ${destination} --since 24h`;
  const letters = deadLetters(about, dead.get(destination) ?? 0, replay);
  const setting = `channels.${name}.${channel.type === 'email' ? 'smtp_url' : 'url'}`;
  if (reached.kind === 'reached') return [ok(about, `${host} is reachable`), ...letters];
  const advice = `verify that it runs, and verify ${setting}`;
  return [warning(about, `${host} is unreachable: ${reached.error}`, advice), ...letters];
}

/**
 * Checks that the host of the heartbeat accepts connections. Sends no request, because a request
 * would count as a heartbeat.
 */
export async function checkHeartbeat(url: string, { limitMs, signal }: Limits): Promise<Finding[]> {
  const guard = createAddressGuard({ allow: ['0.0.0.0/0', '::/0'] });
  const { host } = new URL(url);
  const reached = await reach(url, { guard, timeoutMs: limitMs, signal, lookup });
  if (reached.kind === 'reached') return [ok('heartbeat', `${host} is reachable`)];
  return [warning('heartbeat', `${host} is unreachable: ${reached.error}`, 'verify heartbeat.url')];
}

function deadLetters(about: string, count: number, replay: string): Finding[] {
  if (count === 0) return [];
  return [
    warning(
      about,
      `${count} dead letter${count === 1 ? '' : 's'}`,
      `after fixing the cause: ${replay}`,
    ),
  ];
}
