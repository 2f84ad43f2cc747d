/** One request of a client; undefined: the answer has no body. */
export type SendRequest = <T>(method: string, path: string, body?: unknown) => Promise<T>;

/** "?a=1&b=2", without what is undefined; empty if nothing is left. */
export function queryOf(query: object): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
  return parameters.size === 0 ? '' : `?${parameters}`;
}
