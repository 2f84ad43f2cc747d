import type { FastifyRequest } from 'fastify';

/** Pages of other origins cannot send this header, because CORS does not allow it. */
const HEADER = 'x-requested-with';
const VALUE = 'dawatch';
const SAFE: readonly string[] = ['GET', 'HEAD'];

/**
 * Returns whether a cookie may authenticate the request: a page of this server must have sent it,
 * and not another origin of the same site. Browsers send Sec-Fetch-Site over https and to this
 * machine only. Over http, SameSite protects the cookie, and Origin is compared if the browser
 * sends it, as it does with every request that changes something.
 */
export function mayUseCookie(request: FastifyRequest, publicUrl: string | undefined): boolean {
  const { method, routeOptions } = request;
  const isSafe = SAFE.includes(method);
  if (routeOptions.config?.acceptsBasic) return mayUseOnBoard(request, publicUrl, isSafe);
  return (isSafe || hasMark(request)) && isSameOrigin(request, publicUrl);
}

/**
 * Whether the request has the header that a change needs with a session. The check of the origin
 * does not suffice: over http, a GET caused by a page on another port of this host has neither
 * Origin nor Sec-Fetch-Site, and SameSite sends the cookie.
 */
export function hasMark({ headers }: FastifyRequest): boolean {
  return headers[HEADER] === VALUE;
}

/**
 * The scripts of the queue board come from a library and cannot send the header of the dashboard.
 * Changes on the board therefore need a browser header that names the origin. Opening the board by
 * its address is allowed.
 */
function mayUseOnBoard(
  request: FastifyRequest,
  publicUrl: string | undefined,
  isSafe: boolean,
): boolean {
  const { origin, 'sec-fetch-site': site } = request.headers;
  if (isSafe) return site === 'none' || isSameOrigin(request, publicUrl);
  return (site !== undefined || origin !== undefined) && isSameOrigin(request, publicUrl);
}

/**
 * Returns whether no page of another origin sent the request. True for clients that are not
 * browsers.
 */
export function isSameOrigin({ headers }: FastifyRequest, publicUrl: string | undefined): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  if (origin === undefined) return true;
  return origin === webOriginOf(publicUrl) || URL.parse(origin)?.host === host?.toLowerCase();
}

export function webOriginOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : URL.parse(url)?.origin;
}
