import { lookup } from 'node:dns';
import { isIP } from 'node:net';
import { detailOf, discover } from '../../access/provider.ts';
import { type ConnectionCause, causeOf } from '../../lib/connection-error.ts';
import type { MailServer } from '../../notifications/channels/email.ts';
import { checkWebhookUrl } from '../../notifications/channels/webhook.ts';
import {
  type AddressGuard,
  createAddressGuard,
  createLookup,
  guardedConnector,
  type LookupAll,
} from '../../notifications/transport/address-guard.ts';
import type { Webhook } from '../../notifications/webhook.ts';
import type { Config } from '../config/schema.ts';
import { type Finding, ok, problem, reported, settingName, warning } from './finding.ts';

export type ConnectionCheck =
  | { kind: 'reached' }
  /** `error`: one sentence without the URL or an address. */
  | { kind: 'not_reached'; cause: ConnectionCause; error: string };

/** Connector protocol and default port by URL protocol. */
const PROTOCOLS: Record<string, { connectAs: 'http:' | 'https:'; port: string } | undefined> = {
  'http:': { connectAs: 'http:', port: '80' },
  'https:': { connectAs: 'https:', port: '443' },
};

/**
 * Establishes a connection to a URL, including TLS, and closes it without sending anything. Never
 * rejects.
 */
export async function reach(
  url: string,
  options: {
    /** Undefined: every address is allowed. */
    guard: AddressGuard | undefined;
    timeoutMs: number;
    /** Default: the hosts file and DNS. */
    lookup?: LookupAll;
  },
): Promise<ConnectionCheck> {
  const { guard, timeoutMs, lookup = createLookup() } = options;
  const target = URL.parse(url);
  const protocol = target && PROTOCOLS[target.protocol];
  if (!target || !protocol)
    return { kind: 'not_reached', cause: 'other', error: 'the URL is invalid' };
  const limit = AbortSignal.timeout(timeoutMs);
  const isProxied = target.protocol.startsWith('http');
  const connect = guardedConnector({ guard, timeoutMs, signal: limit, lookup, isProxied });
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

/**
 * Checks that the receiver of a webhook can be connected to. Sends nothing. Disabled and failing
 * webhooks are the subject of alerts.
 */
export async function checkWebhook(
  { id, url, enabled }: Webhook,
  { webhooks, limitMs }: { webhooks: Config['webhooks']; limitMs: number },
): Promise<Finding[]> {
  if (!enabled || url === null) return [];
  const about = `webhook.${id}`;
  const guard = createAddressGuard({ allow: webhooks.allow });
  const host = URL.parse(url)?.host ?? '?';
  const refusal = checkWebhookUrl(url, { allowHttp: webhooks.allow_http, guard });
  const advice = `dawatch webhooks update ${id} --url …; to allow receivers in your network, set webhooks.allow and, without TLS, webhooks.allow_http`;
  if (refusal !== undefined)
    return [problem(about, `nothing is sent to ${host}: ${refusal}`, advice)];
  const reached = await reach(url, { guard, timeoutMs: limitMs });
  if (reached.kind === 'reached') return [ok(about, `${host} is reachable`)];
  const action =
    reached.cause === 'guarded'
      ? advice
      : 'verify that the receiver runs; pending deliveries are retried for three days';
  return [warning(about, `${host} is unreachable: ${reached.error}`, action)];
}

/**
 * Checks that an address of the operator, which may be private, accepts connections: of a channel
 * or of the heartbeat. Sends no request. `setting`: the name of its setting.
 */
export async function checkAddress(
  about: string,
  { url, setting, limitMs }: { url: string; setting: string; limitMs: number },
): Promise<Finding[]> {
  const { host } = new URL(url);
  const reached = await reach(url, { guard: undefined, timeoutMs: limitMs, lookup });
  if (reached.kind === 'reached') return [ok(about, `${host} is reachable`)];
  const advice = `verify that it runs, and verify ${setting}`;
  return [warning(about, `${host} is unreachable: ${reached.error}`, advice)];
}

/** Checks that a mail server accepts the session of a channel, with its login. Sends no mail. */
export async function checkMail(
  name: string,
  { settings, limitMs }: { settings: MailServer; limitMs: number },
): Promise<Finding[]> {
  const about = `channel.${name}`;
  // Loaded on demand, because importing it would slow every start.
  const { checkMailServer } = await import('../../notifications/channels/email.ts');
  const { host } = new URL(settings.smtp_url);
  const setting = `channels.${name}`;
  try {
    const failure = await checkMailServer(settings, limitMs);
    if (!failure) return [ok(about, `${host} accepts the connection; no mail is sent`)];
    const { error, answered } = failure;
    return [
      answered
        ? problem(about, `${host}: ${error}`, `verify smtp_url, tls and tls_ca_file of ${setting}`)
        : warning(
            about,
            `${host}: ${error}`,
            `verify that it runs, and verify ${setting}.smtp_url`,
          ),
    ];
  } catch (error) {
    const reason = error instanceof Error ? error.message : error;
    return [problem(about, `${setting}.tls_ca_file is unusable: ${reason}`, 'correct the file')];
  }
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
