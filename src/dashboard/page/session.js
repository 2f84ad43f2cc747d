import { Api, ApiError } from './api.js';

const KEY = 'dawatch.token';

/** Kept by this tab alone, until it is closed. */
export const storedToken = {
  get: () => sessionStorage.getItem(KEY),
  /** @param {string} token */
  set: (token) => sessionStorage.setItem(KEY, token),
  clear: () => sessionStorage.removeItem(KEY),
};

/**
 * Who shows this token. Throws an error whose message is for people.
 * @param {string} token @returns {Promise<import('./context.js').Session>}
 */
export async function whoIs(token) {
  if (token === '') throw new Error('Enter a token.');
  try {
    return await new Api({ token }).get('v1/whoami');
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    if (error.status === 401)
      throw new Error('This server does not know that token: it may be mistyped, revoked, or of another server.');
    if (error.status === 429)
      throw new Error(`Too many wrong tokens came from here. Try again in ${error.retryAfterS ?? 60} s.`);
    throw new Error(error.message);
  }
}
