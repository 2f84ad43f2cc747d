import { Agent, request } from 'node:http';

type PostResult = { status: number; retryAfterS: number | undefined; ms: number };

/**
 * Sends posts to one server over a fixed number of persistent connections. Rejects without a
 * response.
 */
export function openPoster(url: string, apiKey: string, connections: number) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const headers = { 'x-api-key': apiKey, 'content-type': 'application/json' };
  return {
    post: (body: string) =>
      new Promise<PostResult>((resolve, reject) => {
        let from = performance.now();
        const outgoing = request(`${url}/v1/submissions`, {
          agent,
          method: 'POST',
          headers: { ...headers, 'content-length': Buffer.byteLength(body) },
        });
        // Before that, the request waits for a free connection of this client.
        outgoing.once('socket', () => {
          from = performance.now();
        });
        outgoing.on('error', reject);
        outgoing.on('response', (response) => {
          const retryAfter = response.headers['retry-after'];
          response.on('error', reject).on('end', () =>
            resolve({
              status: response.statusCode ?? 0,
              retryAfterS: retryAfter === undefined ? undefined : Number(retryAfter),
              ms: performance.now() - from,
            }),
          );
          response.resume();
        });
        outgoing.end(body);
      }),
    close: () => agent.destroy(),
  };
}

/** Returns the quantile of the values; 0 for none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
