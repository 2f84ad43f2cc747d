import type { IncomingHttpHeaders } from 'node:http';

/** Headers that describe the data. Credentials are not forwarded, because those of callers are for dawatch. */
const FORWARDED = ['content-type', 'accept', 'idempotency-key'] as const;

export function forwardedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const forwarded: Record<string, string> = {};
  for (const name of FORWARDED) {
    const value = headers[name];
    if (typeof value === 'string') forwarded[name] = value;
  }
  return forwarded;
}

/** Returns the query of a URL with its question mark, without dawatch's own parameter `upstream`; empty if nothing is left. */
export function forwardedQuery(url: string): string {
  const at = url.indexOf('?');
  const parameters = at < 0 ? [] : url.slice(at + 1).split('&');
  const query = parameters.filter((parameter) => parameter !== '' && !/^upstream(?:=|$)/.test(parameter)).join('&');
  return query === '' ? '' : `?${query}`;
}
