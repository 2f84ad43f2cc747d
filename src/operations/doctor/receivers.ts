import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { detailOf, discover } from '../../access/provider.ts';
import { type ConnectionCause, causeOf } from '../../lib/connection-error.ts';
import { checkWebhookUrl } from '../../notifications/channels/webhook.ts';
import { channelDestination, webhookDestination } from '../../notifications/delivery.ts';
import {
  type AddressGuard,
  createAddressGuard,
  createLookup,
  guardedConnector,
  type LookupAll,
} from '../../notifications/transport/address-guard.ts';
import { CALLBACKS_ID, type Webhook } from '../../notifications/webhook.ts';
import type { ChannelConfig, Config } from '../config/schema.ts';
import { type Finding, ok, problem, reported, settingName, warning } from './finding.ts';

export type ConnectionCheck =
  | { kind: 'reached' }
  /** `error`: one sentence without the URL or an address. */
  | { kind: 'not_reached'; cause: ConnectionCause; error: string };

/** Connector protocol and default port by URL protocol. */
const PROTOCOLS: Record<string, { connectAs: 'http:' | 'https:'; port: string } | undefined> = {
  'http:': { connectAs: 'http:', port: '80' },
  'https:': { connectAs: 'https:', port: '443' },
  'smtp:': { connectAs: 'http:', port: '587' },
  'smtps:': { connectAs: 'https:', port: '465' },
};

/**
 * Establishes a connection to a URL, including TLS, and closes it without sending anything. Never
 * rejects.
 */
export async function reach(
  url: string,
  options: {
    guard: AddressGuard;
    timeoutMs: number;
    signal: AbortSignal;
    /** Default: the hosts file and DNS. */
    lookup?: LookupAll;
  },
): Promise<ConnectionCheck> {
  const { guard, timeoutMs, signal, lookup = createLookup() } = options;
  const target = URL.parse(url);
  const protocol = target && PROTOCOLS[target.protocol];
  if (!target || !protocol)
    return { kind: 'not_reached', cause: 'other', error: 'the URL is invalid' };
  const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const connect = guardedConnector({ guard, timeoutMs, signal: limit, lookup });
  const hostname = target.hostname.replace(/^\[(.*)\]$/, '$1');
  const { connectAs, port } = protocol;
  try {
    await new Promise<void>((resolve, reject) => {
      const late = () => reject(Object.assign(new Error('late'), { code: 'ETIMEDOUT' }));
      limit.addEventListener('abort', late, { once: true });
      if (limit.aborted) late();
      const to = { hostname, host: target.host, protocol: connectAs, port: target.port || port };
      connect(isIP(hostname) ? to : { ...to, servername: hostname }, (error, socket) => {
        limit.removeEventListener('abort', late);
        socket?.destroy();
        if (error) reject(error);
        else resolve();
      });
    });
    return { kind: 'reached' };
  } catch (error) {
    const { cause, sentence } = causeOf(error);
    return { kind: 'not_reached', cause, error: sentence };
  }
}

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

/**
 * Checks that the provider responds and has the configured issuer. The client secret can only be
 * checked by a sign-in.
 */
export async function checkProvider({ oidc, server }: Config, limitMs: number): Promise<Finding[]> {
  const issuer = settingName('oidc.issuer');
  try {
    const endpoints = (await discover(oidc, limitMs / 1_000)).serverMetadata();
    const redirect = `${server.public_url?.replace(/\/+$/, '')}/v1/session/oidc/callback`;
    const isMissing = (name: string) => endpoints.scopes_supported?.includes(name) === false;
    const missing = oidc.scopes.filter(isMissing);
    return reported(
      ok('oidc', `the provider responds; it must allow the redirect to ${redirect}`),
      missing.length > 0 &&
        warning(
          'oidc.scopes',
          `the provider does not list ${missing.join(', ')}`,
          'remove them, or create them there',
        ),
      server.public_url?.startsWith('http:') === true &&
        !/^http:\/\/(?:localhost|127\.|\[::1\])/.test(server.public_url) &&
        warning(
          'oidc.public_url',
          'people sign in without https',
          `set ${settingName('server.public_url')} to https`,
        ),
    );
  } catch (error) {
    return [
      problem(
        'oidc',
        `people cannot sign in at the provider: ${detailOf(error)}`,
        `verify ${issuer}`,
      ),
    ];
  }
}
