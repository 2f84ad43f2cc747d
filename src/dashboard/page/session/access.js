/** @typedef {import('../data/context.js').Session} Session */

/** @param {Session} session */
export function maySeeSubmissions({ scopes }) {
  return scopes.includes('submissions:read');
}

/** @param {Session} session */
export function mayChangeSubmissions({ scopes }) {
  return scopes.includes('submissions:write');
}

/** @param {Session} session */
export function maySeeNotifications({ scopes }) {
  return scopes.includes('operations:read') || scopes.includes('webhooks:write');
}

/** Changes and tests of webhooks, and replays. @param {Session} session */
export function mayChangeNotifications({ scopes }) {
  return scopes.includes('webhooks:write');
}

/** With forwarded upstream tokens, the upstream decides about access. @param {Session} session */
export function mayLookUpUsers({ scopes, users_bearer }) {
  return users_bearer === 'upstream' || scopes.includes('users:read');
}

/** @param {Session} session */
export function mayListUsers({ users_bearer, ...session }) {
  return users_bearer === 'upstream' || isAdmin(session);
}

/** @param {Pick<Session, 'scopes'>} session */
export function isAdmin({ scopes }) {
  return scopes.includes('admin');
}

/** Channels and mutes. @param {Session} session */
export function maySeeOperations({ scopes }) {
  return scopes.includes('operations:read');
}
