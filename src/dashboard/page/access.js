/** @typedef {import('./context.js').Session} Session */

/** @param {Session} session */
export function maySeeSubmissions({ role }) {
  return role !== 'user';
}

/** @param {Session} session */
export function maySeeNotifications({ role }) {
  return role === 'admin';
}

/** Where the upstream's own tokens are forwarded, the upstream decides. @param {Session} session */
export function mayLookUpUsers({ role, users_bearer }) {
  return users_bearer === 'upstream' || role !== 'service';
}

/** @param {Session} session */
export function mayListUsers({ role, users_bearer }) {
  return users_bearer === 'upstream' || role === 'admin';
}
