import { randomBytes } from 'node:crypto';
import type { CookieSerializeOptions } from '@fastify/cookie';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { isLoopback } from '../lib/addresses.ts';

/** Pages of other origins cannot send this header, because CORS does not allow it. */
const HEADER = 'x-requested-with';
const HEADER_VALUE = 'dawatch';
const SAFE: readonly string[] = ['GET', 'HEAD'];

/**
 * Whether a page of this server sent the cookie. Over http, Sec-Fetch-Site is absent: SameSite
 * protects the cookie, and Origin is compared if sent, as with every change.
 */
export function mayUseCookie(request: FastifyRequest, publicUrl: string | undefined): boolean {
  return (SAFE.includes(request.method) || hasMark(request)) && isSameOrigin(request, publicUrl);
}

/**
 * Whether the request has the header that a change needs with a session. Over http, a GET caused by
 * another port of this host has neither Origin nor Sec-Fetch-Site, and SameSite sends the cookie.
 */
function hasMark({ headers }: FastifyRequest): boolean {
  return headers[HEADER] === HEADER_VALUE;
}

/** Whether no page of another origin sent it. True for clients that are not browsers. */
export function isSameOrigin({ headers }: FastifyRequest, publicUrl: string | undefined): boolean {
  const { origin, host } = headers;
  const site = headers['sec-fetch-site'];
  if (site !== undefined) return site === 'same-origin';
  if (origin === undefined) return true;
  return origin === webOriginOf(publicUrl) || URL.parse(origin)?.host === host?.toLowerCase();
}

function webOriginOf(url: string | undefined): string | undefined {
  return url === undefined ? undefined : URL.parse(url)?.origin;
}

const SESSION_COOKIE = 'dawatch-session';
/** Binds a sign-in at a provider to the browser that began it. */
const BROWSER_COOKIE = 'dawatch-sign-in';

/** The form of every value: 256 random bits. */
const VALUE = /^[\w-]{43}$/;

export function makeCookieValue(): string {
  return randomBytes(32).toString('base64url');
}

/** Returns the value of the session cookie; undefined: none; null: malformed or sent twice. */
export function sessionCookieOf(
  request: FastifyRequest,
  publicUrl: string | undefined,
): string | null | undefined {
  return cookieIn(request, SESSION_COOKIE, publicUrl);
}

/** Returns the cookie that binds sign-ins to this browser; undefined without a valid one. */
export function browserCookieOf(
  request: FastifyRequest,
  publicUrl: string | undefined,
): string | undefined {
  return cookieIn(request, BROWSER_COOKIE, publicUrl) ?? undefined;
}

function cookieIn(
  { headers, server }: FastifyRequest,
  cookie: string,
  publicUrl: string | undefined,
): string | null | undefined {
  const header = headers.cookie ?? '';
  if (!header.includes(cookie)) return undefined;
  const values = server.parseCookie(header);
  for (const name of acceptedNames(cookie, publicUrl)) {
    const value = values[name];
    if (value !== undefined) return isOnce(name, header) && VALUE.test(value) ? value : null;
  }
  return undefined;
}

/** The parser takes the first of several cookies with one name. */
function isOnce(name: string, header: string): boolean {
  const names = header.split(';').map((pair) => pair.replace(/=.*/s, '').trim());
  return names.indexOf(name) === names.lastIndexOf(name);
}

/**
 * Another server of the domain can set every cookie but `__Host-` ones. Without a public address,
 * the bound cookie has precedence.
 */
function acceptedNames(cookie: string, publicUrl: string | undefined): readonly string[] {
  return isHttps(publicUrl)
    ? [nameFor(cookie, publicBase(publicUrl))]
    : [nameFor(cookie, HTTPS), cookie];
}

const HTTPS = new URL('https://localhost/');

/** Over https, bound to host and "/". The name has the server's path: several may share a host. */
function nameFor(cookie: string, { protocol, pathname }: URL): string {
  if (protocol !== 'https:') return cookie;
  const suffix = pathname.replace(/\W+/g, '-').replace(/-$/, '');
  return `__Host-${cookie}${suffix}`;
}

function isHttps(publicUrl: string | undefined): publicUrl is string {
  return publicUrl !== undefined && URL.parse(publicUrl)?.protocol === 'https:';
}

/** Whether a browser would ignore the cookie of a session. Browsers treat this machine as https. */
export function isWithoutHttps(
  { headers }: FastifyRequest,
  publicUrl: string | undefined,
): boolean {
  const origin = URL.parse(headers.origin ?? '');
  return (
    isHttps(publicUrl) &&
    origin?.protocol === 'http:' &&
    !isLoopback(origin.hostname.replace(/^\[|\]$/g, ''))
  );
}

export function setSessionCookie(reply: FastifyReply, base: URL, value?: string): void {
  setCookie(reply, SESSION_COOKIE, value ?? '', {
    base,
    ...(value === undefined && { maxAge: 0 }),
  });
}

/**
 * Returns the dashboard's address: `server.public_url` if it has https or the request comes from
 * there, otherwise the requested host without a path.
 */
export function baseOf({ headers }: FastifyRequest, publicUrl: string | undefined): URL {
  const isPublic =
    publicUrl !== undefined &&
    (isHttps(publicUrl) || (headers.origin ?? webOriginOf(publicUrl)) === webOriginOf(publicUrl));
  if (isPublic) return publicBase(publicUrl);
  return headers.origin?.startsWith('https:') ? HTTPS : new URL('http://localhost/');
}

export function publicBase(publicUrl: string): URL {
  return new URL(`${publicUrl.replace(/\/+$/, '')}/`);
}

/** The redirect of a provider comes from another site, so this cookie must be sent with it. */
export function setBrowserCookie(
  reply: FastifyReply,
  base: URL,
  { value, maxAgeS }: { value: string; maxAgeS: number },
): void {
  setCookie(reply, BROWSER_COOKIE, value, { base, maxAge: maxAgeS, sameSite: 'lax' });
}

function setCookie(
  reply: FastifyReply,
  cookie: string,
  value: string,
  { base, ...options }: { base: URL } & CookieSerializeOptions,
): void {
  const secure = base.protocol === 'https:';
  const path = secure ? '/' : base.pathname;
  reply.setCookie(nameFor(cookie, base), value, {
    path,
    httpOnly: true,
    secure,
    sameSite: 'strict',
    ...options,
  });
}
