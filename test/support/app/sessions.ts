import { expect } from 'vitest';
import { type Clock, systemClock } from '../../../src/lib/clock.ts';
import { call, type HttpResponse } from './http-calls.ts';

type Headers = Record<string, string | string[]>;

/**
 * Sends a request as a page of the dashboard does: with the cookie, and without a credential of its
 * own.
 */
export function callWith(
  url: string,
  cookie: string | undefined,
  path: string,
  {
    method = 'GET',
    body,
    headers = {},
  }: { method?: string; body?: unknown; headers?: Headers } = {},
): Promise<HttpResponse> {
  const origin = new URL(url).origin;
  const own = {
    'x-api-key': [],
    'x-requested-with': 'dawatch',
    'sec-fetch-site': 'same-origin',
    origin,
  };
  return call(url, path, {
    method,
    body,
    headers: { ...own, ...(cookie !== undefined && { cookie }), ...headers },
  });
}

/** Signs in with a token. Returns the cookie as a browser would send it, and its attributes. */
export async function signInWith(url: string, token: string, headers: Headers = {}) {
  const authorization = `Bearer ${token}`;
  const response = await callWith(url, undefined, '/v1/session', {
    method: 'POST',
    headers: { authorization, ...headers },
  });
  expect(response, response.text).toMatchObject({ status: 200 });
  const [[cookie = '', ...attributes] = []] = (response.headers['set-cookie'] ?? []).map((text) =>
    text.split('; '),
  );
  return {
    cookie,
    attributes,
    body: JSON.parse(response.text) as { signed_in: boolean; expires_at: string },
  };
}

/** The system clock, which a test sets forward. */
export function shiftedClock(): Clock & { advance(ms: number): void } {
  let shiftMs = 0;
  return {
    now: () => systemClock.now() + shiftMs,
    elapsed: () => systemClock.elapsed(),
    after: (delayMs, run) => systemClock.after(delayMs, run),
    advance(ms) {
      shiftMs += ms;
    },
  };
}
