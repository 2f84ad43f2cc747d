/** dawatch refused, with a problem document (RFC 9457). The message says what was wrong. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /** The HTTP status. */
  readonly status: number;
  /** What was wrong where: a JSON pointer into the body, or the name of a parameter. */
  readonly errors: readonly { pointer: string; detail: string }[];
  /** Seconds after which another try is worth it, where dawatch said so. */
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

/** No answer came at all, or not one of dawatch. `cause` has what the platform said. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

/** Whether the same request may succeed later as it is: the server is away, busy, or counts too many requests. */
export function isTransient(error: unknown): error is ApiError | ConnectionError {
  if (error instanceof ConnectionError) return true;
  return error instanceof ApiError && (error.status === 408 || error.status === 429 || error.status >= 500);
}

/** The error of an answer that is no success. Throws ConnectionError if it isn't one of dawatch. */
export async function toApiError(response: Response, url: string): Promise<ApiError> {
  const problem: unknown = await response.json().catch(() => undefined);
  if (typeof problem !== 'object' || problem === null) throw notDawatchError(response, url);
  const retryAfter = response.headers.get('retry-after') ?? '';
  const retryAfterS = /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) : undefined;
  return new ApiError({ title: 'Refused', detail: '', ...problem, status: response.status, retryAfterS });
}

export function notDawatchError(response: Response, url: string): ConnectionError {
  return new ConnectionError(`${url} answered HTTP ${response.status}, but not as dawatch does`);
}
