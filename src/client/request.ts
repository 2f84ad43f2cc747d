/** Sends a request and returns its body, or undefined for a response without a body. */
export type SendRequest = <T>(method: string, path: string, body?: unknown) => Promise<T>;

/** Returns a query string such as "?a=1&b=2" without undefined values, or "" if there are none. */
export function queryOf(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? '' : `?${parameters}`;
}
