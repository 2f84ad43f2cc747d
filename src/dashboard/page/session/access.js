/** @typedef {import('../data/context.js').Session} Session */

/** @param {Session} session */
export function maySeeSubmissions({ role }) {
  return role !== 'user';
}

/** @param {Session} session */
export function maySeeNotifications({ role }) {
  return role === 'admin';
}

/** With forwarded upstream tokens, the upstream decides about access. @param {Session} session */
export function mayLookUpUsers({ role, users_bearer }) {
  return users_bearer === 'upstream' || role !== 'service';
}

/** @param {Session} session */
export function mayListUsers({ role, users_bearer }) {
  return users_bearer === 'upstream' || role === 'admin';
}

/** @param {Session} session */
export function mayAcknowledge({ role }) {
  return role === 'admin';
}
