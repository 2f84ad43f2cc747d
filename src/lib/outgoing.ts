import { EnvHttpProxyAgent } from 'undici';

/** Requests notice a change of DNS after this time at most, also while others keep arriving. */
const MAX_AGE_MS = 15_000;

/** Connects to any host, through the proxy that HTTPS_PROXY or HTTP_PROXY names for it. */
export function outgoingAgent(options: EnvHttpProxyAgent.Options): EnvHttpProxyAgent {
  return new EnvHttpProxyAgent({ clientTtl: MAX_AGE_MS, proxyTunnel: true, ...options });
}

/** The variables that name a proxy; undici reads them when an agent is created. */
export function proxyVariables(): [name: string, address: string][] {
  return Object.entries(process.env).filter(
    (entry): entry is [string, string] => /^https?_proxy$/i.test(entry[0]) && !!entry[1],
  );
}
