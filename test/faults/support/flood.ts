import { Agent, request } from 'node:http';

type PostResult = { status: number; retryAfterS: number | undefined; ms: number };

/** Posts to one server over so many connections that stay open. Rejects if there is no answer. */
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
        // Until then it waits for a connection of this side.
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

/** The value below which this share of them lies; 0 of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
}
