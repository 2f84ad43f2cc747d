import { Api, ApiError } from '../data/api.js';

const KEY = 'dawatch.token';

/** Stored for this tab until it is closed. */
export const storedToken = {
  get: () => sessionStorage.getItem(KEY),
  /** @param {string} token */
  set: (token) => sessionStorage.setItem(KEY, token),
  clear: () => sessionStorage.removeItem(KEY),
};

/**
 * Returns the session of this token. Throws an error with a message for the user.
 * @param {string} token @returns {Promise<import('../data/context.js').Session>}
 */
export async function fetchSession(token) {
  if (token === '') throw new Error('Enter a token.');
  try {
    return await new Api({ token }).get('v1/whoami');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401) throw new Error('Unknown token: it may be mistyped, revoked, or of another server.');
    if (error.status === 429)
      throw new Error(`Too many wrong tokens came from here. Try again in ${error.retryAfterS ?? 60} s.`);
    throw new Error(error.message);
  }
}
