/**
 * The server refused the request with a problem document (RFC 9457). The message is its title and
 * detail.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status. */
  readonly status: number;
  /** Invalid values: `pointer` is a JSON pointer into the body or the name of a parameter. */
  readonly errors: readonly { pointer: string; detail: string }[];
  /** Seconds of the Retry-After header. */
  readonly retryAfterS: number | undefined;

  constructor(problem: {
    status: number;
    title: string;
    detail: string;
    errors?: { pointer: string; detail: string }[];
    retryAfterS?: number | undefined;
  }) {
    super(`${problem.title}: ${problem.detail}`);
    this.status = problem.status;
    this.errors = problem.errors ?? [];
    this.retryAfterS = problem.retryAfterS;
  }
}

/** There was no response, or not one of dawatch. `cause` is the error of the platform. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
  /** The HTTP status of a response that is not from dawatch, but from a proxy for example. */
  readonly status: number | undefined;
  /** The code of the platform for a missing response, such as ECONNREFUSED. */
  readonly code: string | undefined;

  constructor(
    message: string,
    {
      cause,
      status,
      code,
    }: { cause?: unknown; status?: number | undefined; code?: string | undefined } = {},
  ) {
    super(message, { cause });
    this.status = status;
    this.code = code;
  }
}

/** Whether the code of an error is about the certificate of the server. */
export function isCertificateCode(code: string | undefined): boolean {
  return /CERT|SELF_SIGNED|UNABLE_TO_VERIFY|HOSTNAME_MISMATCH/.test(code ?? '');
}

const REASONS: readonly [codes: RegExp, reason: string][] = [
  [/^(?:ECONNREFUSED|ConnectionRefused)$/, 'the connection was refused'],
  [/^(?:ENOTFOUND|EAI_)/, 'the host name does not resolve'],
  [/^(?:ECONNRESET|EPIPE|UND_ERR_SOCKET|ConnectionClosed)$/, 'the connection was closed'],
  [/^(?:ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/, 'the connection timed out'],
  [/^(?:ERR_SSL_|ERR_TLS_|EPROTO)/, 'TLS failed'],
];

/** Returns the error of a request without a response. */
export function noResponse(url: string, cause: unknown): ConnectionError {
  if (cause instanceof DOMException && cause.name === 'TimeoutError')
    return new ConnectionError(`no response from ${url} in time`, { cause });
  const { code, message } = innermost(cause);
  const explanation = isCertificateCode(code)
    ? 'its certificate is not trusted'
    : REASONS.find(([codes]) => codes.test(code ?? ''))?.[1];
  const reason = explanation === undefined ? message : `${explanation} (${code})`;
  return new ConnectionError(`no response from ${url}: ${reason}`, { cause, code });
}

/** Node has the code in the cause, Bun in the error itself, and browsers have none. */
function innermost(error: unknown): { code: string | undefined; message: string } {
  if (!(error instanceof Error)) return { code: undefined, message: String(error) };
  if ('code' in error && typeof error.code === 'string')
    return { code: error.code, message: error.message || error.code };
  return error.cause === undefined
    ? { code: undefined, message: error.message }
    : innermost(error.cause);
}

/**
 * Returns whether the same request may succeed later: the server is unavailable, overloaded, or
 * limits the rate.
 */
export function isTransient(error: unknown): error is ApiError | ConnectionError {
  if (error instanceof ConnectionError)
    return !isCertificateCode(error.code) && !isRefusedByProxy(error.status);
  return (
    error instanceof ApiError &&
    (error.status === 408 || error.status === 429 || error.status >= 500)
  );
}

/** Some proxies send 404 while the server restarts. */
function isRefusedByProxy(status = 0): boolean {
  return status >= 300 && status < 500 && ![404, 408, 429].includes(status);
}

/**
 * Returns the body of a response. Throws ApiError or ConnectionError, or the reason of the signal.
 */
export async function bodyOf<T>(response: Response, url: string, signal?: AbortSignal): Promise<T> {
  if (!response.ok) throw await toApiError(response, url);
  const result: unknown = await response.json().catch(() => undefined);
  signal?.throwIfAborted();
  if (typeof result !== 'object' || result === null) throw notDawatchError(response, url);
  return result as T;
}

/**
 * Returns the error of an unsuccessful response. Throws ConnectionError if the response is not one
 * of dawatch.
 */
export async function toApiError(response: Response, url: string): Promise<ApiError> {
  const problem: unknown = await response.json().catch(() => undefined);
  if (!isProblem(problem)) throw notDawatchError(response, url);
  const retryAfter = response.headers.get('retry-after') ?? '';
  const retryAfterS = /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
  return new ApiError({ ...problem, status: response.status, retryAfterS });
}

function isProblem(body: unknown): body is { title: string; detail: string } {
  return (
    typeof body === 'object' &&
    body !== null &&
    'title' in body &&
    typeof body.title === 'string' &&
    'detail' in body &&
    typeof body.detail === 'string'
  );
}

/** What a proxy in front of dawatch means by a status. */
const OF_PROXIES: Record<number, string | undefined> = {
  400: 'refuses the request, perhaps because it expects https',
  401: 'requires a login',
  403: 'refuses the request',
  407: 'requires a login',
  413: 'refuses a request of this size',
  429: 'limits the rate',
  502: 'gets no response from it',
  503: 'does not reach it',
  504: 'gets no response from it in time',
};

/** Returns the error of a response that is not from dawatch. */
export function notDawatchError(response: Response, url: string): ConnectionError {
  const { status, headers, type } = response;
  const location = headers.get('location');
  const meaning = OF_PROXIES[status];
  const reason =
    type === 'opaqueredirect' || (status >= 300 && status < 400)
      ? `${url} redirects${location === null ? '' : ` to ${placeOf(location, url)}`}, which is not followed`
      : meaning === undefined
        ? `${url} responded with HTTP ${status}, but is not a dawatch server`
        : `${url} responded with HTTP ${status}: a proxy in front of dawatch ${meaning}`;
  return new ConnectionError(reason, { status });
}

/** Without the query, which may contain a token. */
function placeOf(location: string, url: string): string {
  if (!URL.canParse(location, url)) return 'another address';
  const { origin, pathname } = new URL(location, url);
  return `${origin}${pathname}`;
}
