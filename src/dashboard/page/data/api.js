/** The server rejected the request with a problem document, or would reject it. */
export class ApiError extends Error {
  /**
   * @param {{ status: number, detail: string, retryAfterS?: number | undefined, errors?: readonly
   * FieldError[] }} problem
   */
  constructor({ status, detail, retryAfterS, errors = [] }) {
    super(detail);
    this.name = 'ApiError';
    this.status = status;
    this.retryAfterS = retryAfterS;
    this.errors = errors;
  }

  /** By parameter, or member of the body. @returns {Map<string, string>} */
  get byField() {
    return new Map(
      this.errors.map(({ pointer, detail }) => [pointer.split('/').find(Boolean) ?? '', detail]),
    );
  }
}

/** @typedef {{ pointer: string, detail: string }} FieldError `pointer`: as in a problem document */

/** What to show about an error of a request. @param {unknown} error */
export function messageOf(error) {
  if (!(error instanceof Error)) return String(error);
  const retryAfterS =
    error instanceof ApiError && !/try again/i.test(error.message) ? error.retryAfterS : undefined;
  return retryAfterS === undefined
    ? error.message
    : `${error.message} Try again in ${retryAfterS} s.`;
}

/** No response, or a response that is not from dawatch. The message is shown to the user. */
export class Unreachable extends Error {
  /** @override */
  name = 'Unreachable';
}

const TIMEOUT_MS = 30_000;
/** Pages of other origins cannot send this header, so the server requires it for changes. */
const MARK = { 'x-requested-with': 'dawatch' };
const SILENT = 'The server does not respond. Check that it is running, then try again.';
const UNCLEAR =
  'The server did not respond. The change may have been made nevertheless: check that before you try again.';
const SIGNED_OUT = 'Refused because you were signed out. Try again.';
const FOREIGN =
  'The response is not from dawatch: a proxy may require sign-in or redirect elsewhere. Reload the page to see its response.';

/** The HTTP API with the session of this browser. Methods throw ApiError or Unreachable. */
export class Api {
  #token;
  #onRefused;
  #isRefused = false;

  /**
   * @param {{ token?: string, onRefused?: () => void }} [options] `token`: sent instead of the session;
   *   `onRefused`: called when the server rejects the session, which ends all requests
   */
  constructor({ token, onRefused } = {}) {
    this.#token = token;
    this.#onRefused = onRefused;
  }

  /** @param {string} path @param {{ signal?: AbortSignal }} [options] @returns {Promise<any>} */
  get(path, options = {}) {
    return this.#send('GET', path, options);
  }

  /** @param {string} path @param {unknown} [body] @returns {Promise<any>} */
  post(path, body) {
    return this.#send('POST', path, { body });
  }

  /** @param {string} path @returns {Promise<any>} */
  delete(path) {
    return this.#send('DELETE', path, {});
  }

  /** @param {string} path @param {unknown} body @returns {Promise<any>} */
  patch(path, body) {
    return this.#send('PATCH', path, { body });
  }

  /**
   * @param {string} method @param {string} path @param {{ body?: unknown, signal?: AbortSignal |
   * undefined }} options
   */
  async #send(method, path, { body, signal }) {
    const headers = body === undefined ? {} : { 'content-type': 'application/json' };
    const timeout = AbortSignal.timeout(TIMEOUT_MS);
    const response = await this.#fetch(method, path, {
      headers: { accept: 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    return response.status === 204 ? undefined : await bodyOf(response);
  }

  /** @param {string} method @param {string} path @param {RequestInit} init */
  async #fetch(method, path, init) {
    // Such a token is not a valid header value; fetch would reject without a usable reason.
    if (this.#token !== undefined && !/^[\x21-\x7e]*$/.test(this.#token))
      throw new ApiError({
        status: 400,
        detail:
          'A token contains no spaces and only ASCII characters. Check that it was copied completely.',
      });
    if (this.#isRefused) throw new ApiError({ status: 401, detail: SIGNED_OUT });
    const credential =
      this.#token === undefined ? MARK : { authorization: `Bearer ${this.#token}` };
    const headers = { ...init.headers, ...credential };
    const response = await fetch(path, { ...init, method, headers, cache: 'no-store' }).catch(
      (error) => silent(error, method === 'GET' ? SILENT : UNCLEAR),
    );
    if (response.ok) return response;
    if (response.status !== 401 || !this.#onRefused) throw await errorOf(response);
    this.#isRefused = true;
    this.#onRefused();
    throw new ApiError({ status: 401, detail: SIGNED_OUT });
  }
}

/** @param {Response} response */
async function bodyOf(response) {
  const text = await response.text().catch((error) => silent(error));
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Unreachable(FOREIGN, { cause: error });
  }
}

/** @param {Error} error @param {string} [message] @returns {never} */
function silent(error, message = SILENT) {
  if (error.name === 'AbortError') throw error;
  throw new Unreachable(message, { cause: error });
}

/** @param {Response} response */
async function errorOf(response) {
  const problem = await response.json().catch(() => ({}));
  const detail =
    typeof problem?.detail === 'string'
      ? problem.detail
      : `The server returned HTTP ${response.status}.`;
  const retryAfter = response.headers.get('retry-after');
  const errors = Array.isArray(problem?.errors) ? problem.errors : [];
  return new ApiError({
    status: response.status,
    detail,
    retryAfterS: Number(retryAfter) || undefined,
    errors,
  });
}

/**
 * Returns "path?a=1", without parameters that are undefined or empty.
 * @param {string} path @param {Record<string, string | number | undefined>} query
 */
export function withQuery(path, query) {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    if (value !== undefined && value !== '') parameters.set(name, String(value));
  return parameters.size === 0 ? path : `${path}?${parameters}`;
}
