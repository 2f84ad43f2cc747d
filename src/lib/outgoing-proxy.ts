import { request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { isIP, isIPv6, type Socket } from 'node:net';
import { buildConnector, setGlobalDispatcher } from 'undici';
import { isLoopback, proxyMatcher, trustedProxyError } from './addresses.ts';
import { basicAuthorization } from './basic-auth.ts';
import { causeOf, ProxyError } from './connection-error.ts';
import { outgoingAgent } from './outgoing-connections.ts';

/** Of a connection, as undici's connectors receive it. */
type Target = Pick<buildConnector.Options, 'protocol' | 'hostname' | 'port'>;

const DEFAULT_PORTS: Record<string, string> = { 'http:': '80', 'https:': '443' };

/**
 * Returns the address of the proxy in HTTPS_PROXY or HTTP_PROXY; undefined if the connection is
 * direct: none is set, NO_PROXY names the host, or it is this machine.
 */
function proxyFor(target: Target): string | undefined {
  const name = target.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY';
  const proxy = variable(name);
  return proxy === '' || isDirect(target) ? undefined : proxy;
}

function variable(name: string): string {
  return process.env[name.toLowerCase()] || process.env[name] || '';
}

function isDirect({ protocol, hostname, port }: Target): boolean {
  const host = hostname.replace(/^\[|\]$|\.$/g, '').toLowerCase();
  return (
    isLoopback(host) ||
    variable('NO_PROXY')
      .toLowerCase()
      // Some tools keep the quotes around a value.
      .split(/[\s,"']+/)
      .some(excludes)
  );

  /** `entry`: `*`, a domain with its subdomains, an address or a range; optionally with a port. */
  function excludes(entry: string): boolean {
    if (entry === '*') return true;
    if (isIP(host) && trustedProxyError(entry) === undefined) return proxyMatcher([entry])(host);
    const [, address, domain = '', onlyPort] =
      /^(?:\[(.*)\]|(?:\*?\.)?(.*?)\.?)(?::(\d+))?$/.exec(entry) ?? [];
    if (onlyPort !== undefined && onlyPort !== (port || DEFAULT_PORTS[protocol])) return false;
    const name = address ?? domain;
    if (isIP(host) && isIP(name)) return proxyMatcher([name])(host);
    return name !== '' && (host === name || host.endsWith(`.${name}`));
  }
}

type Connecting = {
  timeoutMs: number;
  signal?: AbortSignal | undefined;
  /** Returns the host or address to which the proxy connects. Default: the name of the target. */
  resolve?: (hostname: string) => Promise<string>;
};

/**
 * Returns a connector for undici that uses the proxy of the environment, by CONNECT, and `direct`
 * without one. `direct` also adds TLS.
 */
export function throughProxy(
  direct: buildConnector.connector,
  { timeoutMs, signal, resolve = async (hostname) => hostname }: Connecting,
): buildConnector.connector {
  return (target, callback) => {
    const proxy = proxyFor(target);
    if (proxy === undefined) {
      direct(target, callback);
      return;
    }
    const tunnel = resolve(target.hostname).then((hostname) =>
      openTunnel(proxy, { ...target, hostname }, { timeoutMs, signal }),
    );
    tunnel.then(
      (socket) => {
        if (target.protocol === 'https:') direct({ ...target, httpSocket: socket }, callback);
        else callback(null, socket);
      },
      (error) => callback(error, null),
    );
  };
}

/** Rejects with ProxyError. The signal closes the connection at any time. */
function openTunnel(
  proxy: string,
  { protocol, hostname, port }: Target,
  { timeoutMs, signal }: Connecting,
): Promise<Socket> {
  const url = URL.parse(proxy.includes('://') ? proxy : `http://${proxy}`);
  const isHttps = url?.protocol === 'https:';
  if (!url || !(isHttps || url.protocol === 'http:'))
    return Promise.reject(new ProxyError('its address must begin with http:// or https://'));
  const to = `${isIPv6(hostname) ? `[${hostname}]` : hostname}:${port || DEFAULT_PORTS[protocol]}`;
  const { authorization } = basicAuthorization(url);
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const request = (isHttps ? requestHttps : requestHttp)({
    hostname: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port || DEFAULT_PORTS[url.protocol],
    method: 'CONNECT',
    path: to,
    headers: { host: to, ...(authorization && { 'proxy-authorization': authorization }) },
    agent: false,
    timeout: timeoutMs,
  });
  const abort = () => request.destroy();
  signal?.addEventListener('abort', abort, { once: true });
  request.once('timeout', () =>
    request.destroy(Object.assign(new Error('timeout'), { code: 'ETIMEDOUT' })),
  );
  request.once('error', (error) => reject(new ProxyError(causeOf(error).sentence)));
  request.once('response', (response) => {
    response.destroy();
    reject(new ProxyError(`it responded with ${response.statusCode}`));
  });
  request.once('connect', ({ statusCode }, socket: Socket) => {
    socket.setTimeout(0);
    signal?.addEventListener('abort', () => socket.destroy(), { once: true });
    if (statusCode === 200) resolve(socket);
    else {
      socket.destroy();
      reject(new ProxyError(`it responded with ${statusCode}`));
    }
  });
  request.once('close', () => signal?.removeEventListener('abort', abort));
  request.end();
  return promise;
}

const FETCH_CONNECT_MS = 10_000;

/**
 * Uses the proxy of the environment for `fetch` in this process, too. `reuse`: whether connections
 * are used again. A server rarely calls `fetch`, so that a reused connection is mostly stale.
 */
export function configureFetch({ reuse }: { reuse: boolean }): void {
  const timeoutMs = FETCH_CONNECT_MS;
  const connect = throughProxy(buildConnector({ timeout: timeoutMs }), { timeoutMs });
  setGlobalDispatcher(outgoingAgent({ connect, pipelining: reuse ? 1 : 0 }));
}
