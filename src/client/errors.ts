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
}

/**
 * Returns whether the same request may succeed later: the server is unavailable, overloaded, or
 * limits the rate.
 */
export function isTransient(error: unknown): error is ApiError | ConnectionError {
  if (error instanceof ConnectionError) return true;
  return (
    error instanceof ApiError &&
    (error.status === 408 || error.status === 429 || error.status >= 500)
  );
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
  if (typeof problem !== 'object' || problem === null) throw notDawatchError(response, url);
  const retryAfter = response.headers.get('retry-after') ?? '';
  const retryAfterS = /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
  return new ApiError({
    title: 'Refused',
    detail: '',
    ...problem,
    status: response.status,
    retryAfterS,
  });
}

export function notDawatchError(response: Response, url: string): ConnectionError {
  return new ConnectionError(
    `${url} responded with HTTP ${response.status}, but is not a dawatch server`,
  );
}
