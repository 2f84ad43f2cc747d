import { ROLES, type Role, SCOPES, type Scope } from '../../../src/access/access.ts';

export type Access = 'open' | { roles: readonly Role[]; scopes: readonly Scope[] };
const READ_SUBMISSIONS: Access = {
  roles: ['service', 'operator', 'admin'],
  scopes: ['submissions:read', 'admin'],
};
const WRITE_SUBMISSIONS: Access = {
  roles: ['service', 'admin'],
  scopes: ['submissions:write', 'admin'],
};
const READ_OPERATIONS: Access = {
  roles: ['operator', 'admin'],
  scopes: ['operations:read', 'admin'],
};
const READ_WEBHOOKS: Access = {
  roles: ['operator', 'admin'],
  scopes: ['operations:read', 'webhooks:write', 'admin'],
};
const WRITE_WEBHOOKS: Access = { roles: ['admin'], scopes: ['webhooks:write', 'admin'] };
const READ_USER: Access = { roles: ['user', 'admin'], scopes: ['users:read', 'admin'] };
const ADMIN: Access = { roles: ['admin'], scopes: ['admin'] };

/**
 * The permitted roles and scopes of every endpoint in the served document; a new endpoint must be
 * added here.
 */
export const MATRIX: Record<string, { access: Access; query?: string; body?: unknown }> = {
  'GET /livez': { access: 'open' },
  'GET /readyz': { access: 'open' },
  'GET /metrics': { access: 'open' },
  'GET /openapi.json': { access: 'open' },
  'GET /events.schema.json': { access: 'open' },
  'POST /v1/submissions': { access: WRITE_SUBMISSIONS, body: { submission_id: 'of-the-matrix' } },
  'GET /v1/submissions': { access: READ_SUBMISSIONS },
  'GET /v1/submission_count': { access: READ_SUBMISSIONS },
  'POST /v1/submissions/lookup': {
    access: READ_SUBMISSIONS,
    body: { submission_ids: ['of-the-matrix'] },
  },
  'GET /v1/submissions/{id}': { access: READ_SUBMISSIONS },
  'GET /v1/submissions/{id}/wait': { access: READ_SUBMISSIONS, query: '?timeout_s=0' },
  'PATCH /v1/submissions/{id}': { access: WRITE_SUBMISSIONS, body: { stuck_after_s: 600 } },
  'DELETE /v1/submissions/{id}': { access: WRITE_SUBMISSIONS },
  'GET /v1/get_submission_info': {
    access: READ_SUBMISSIONS,
    query: '?submission_id=00000000-0000-4000-8000-000000000000',
  },
  // An invalid parameter, because an accepted stream would not end.
  'GET /v1/events': { access: READ_SUBMISSIONS, query: '?after=x' },
  'GET /v1/pacing': { access: READ_SUBMISSIONS },
  'GET /v1/overview': { access: READ_SUBMISSIONS },
  'GET /v1/alerts': { access: READ_SUBMISSIONS },
  'GET /v1/alerts/{id}': { access: READ_SUBMISSIONS },
  'GET /v1/session': { access: 'open' },
  'POST /v1/session': { access: { roles: ROLES, scopes: SCOPES } },
  'DELETE /v1/session': { access: { roles: ROLES, scopes: SCOPES } },
  'GET /v1/whoami': { access: { roles: ROLES, scopes: SCOPES } },
  'GET /users/get_user': { access: READ_USER, query: '?name=User%201&email=user1%40example.com' },
  'GET /user/get_user': { access: READ_USER, query: '?name=User%201&email=user1%40example.com' },
  'GET /admin/get_all_users': { access: ADMIN, query: '?limit=1' },
  'GET /v1/audit': { access: ADMIN },
  'POST /v1/credentials': { access: ADMIN, body: { name: 'of the matrix', role: 'user' } },
  'GET /v1/credentials': { access: ADMIN },
  'GET /v1/credentials/{id}': { access: ADMIN },
  'PATCH /v1/credentials/{id}': { access: ADMIN, body: { name: 'x' } },
  'DELETE /v1/credentials/{id}': { access: ADMIN },
  'POST /v1/credentials/{id}/rotate': { access: ADMIN, body: {} },
  'POST /v1/credentials/{id}/readmit': { access: ADMIN },
  'POST /v1/webhooks': { access: WRITE_WEBHOOKS, body: { url: 'https://example.com/' } },
  'GET /v1/webhooks': { access: READ_WEBHOOKS },
  'GET /v1/webhooks/{id}': { access: READ_WEBHOOKS },
  'PATCH /v1/webhooks/{id}': { access: WRITE_WEBHOOKS, body: { enabled: false } },
  'DELETE /v1/webhooks/{id}': { access: WRITE_WEBHOOKS },
  'POST /v1/webhooks/{id}/rotate': { access: WRITE_WEBHOOKS, body: {} },
  'POST /v1/webhooks/{id}/test': { access: WRITE_WEBHOOKS },
  'POST /v1/mutes': { access: ADMIN, body: { until: '2000-01-02T03:04:05Z' } },
  'GET /v1/mutes': { access: READ_OPERATIONS },
  'DELETE /v1/mutes/{id}': { access: ADMIN },
  'GET /v1/channels': { access: READ_OPERATIONS },
  'POST /v1/channels/{name}/test': { access: ADMIN },
  'POST /v1/callbacks/test': { access: WRITE_WEBHOOKS, body: { url: 'not an address' } },
  'GET /v1/deliveries': { access: READ_WEBHOOKS },
  'GET /v1/deliveries/{id}': { access: READ_WEBHOOKS },
  'POST /v1/deliveries/{id}/replay': { access: WRITE_WEBHOOKS },
  'POST /v1/deliveries/replay': {
    access: WRITE_WEBHOOKS,
    body: { destination: 'webhook:callbacks', since: '2026-01-02T03:04:05Z' },
  },
};
