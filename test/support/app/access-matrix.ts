import { ROLES, type Role } from '../../../src/access/access.ts';

/** The permitted roles; open: no credential is needed. */
export type Access = 'open' | readonly Role[];
const READ: Access = ['service', 'operator', 'admin'];
const WRITE: Access = ['service', 'admin'];
const OPERATE: Access = ['operator', 'admin'];
const READ_USER: Access = ['user', 'admin'];
const ADMIN: Access = ['admin'];

/**
 * The permitted roles of every endpoint in the served document; a new endpoint must be
 * added here.
 */
export const MATRIX: Record<string, { access: Access; query?: string; body?: unknown }> = {
  'GET /livez': { access: 'open' },
  'GET /readyz': { access: 'open' },
  'GET /metrics': { access: 'open' },
  'GET /openapi.json': { access: 'open' },
  'GET /events.schema.json': { access: 'open' },
  'POST /v1/submissions': { access: WRITE, body: { submission_id: 'of-the-matrix' } },
  'GET /v1/submissions': { access: READ },
  'GET /v1/submission_count': { access: READ },
  'POST /v1/submissions/lookup': {
    access: READ,
    body: { submission_ids: ['of-the-matrix'] },
  },
  'GET /v1/submissions/{id}': { access: READ },
  'GET /v1/submissions/{id}/wait': { access: READ, query: '?timeout_s=0' },
  // Without a node there is no proof.
  'GET /v1/submissions/{id}/proof': { access: READ },
  'PATCH /v1/submissions/{id}': { access: WRITE, body: { stuck_after_s: 600 } },
  'DELETE /v1/submissions/{id}': { access: WRITE },
  'GET /v1/get_submission_info': {
    access: READ,
    query: '?submission_id=00000000-0000-4000-8000-000000000000',
  },
  // An invalid parameter, because an accepted stream would not end.
  'GET /v1/events': { access: READ, query: '?after=x' },
  'GET /v1/pacing': { access: READ },
  'GET /v1/overview': { access: READ },
  'GET /v1/alerts': { access: READ },
  'GET /v1/session': { access: 'open' },
  'POST /v1/session': { access: ROLES },
  'DELETE /v1/session': { access: ROLES },
  'GET /v1/whoami': { access: ROLES },
  'GET /users/get_user': { access: READ_USER, query: '?name=User%201&email=user1%40example.com' },
  'GET /user/get_user': { access: READ_USER, query: '?name=User%201&email=user1%40example.com' },
  'GET /admin/get_all_users': { access: ADMIN, query: '?limit=1' },
  'GET /v1/audit': { access: ADMIN },
  'POST /v1/credentials': { access: ADMIN, body: { name: 'of the matrix', role: 'user' } },
  'GET /v1/credentials': { access: ADMIN },
  'DELETE /v1/credentials/{id}': { access: ADMIN },
  'POST /v1/webhooks': { access: ADMIN, body: { url: 'https://example.com/' } },
  'GET /v1/webhooks': { access: OPERATE },
  'GET /v1/webhooks/{id}': { access: OPERATE },
  'PATCH /v1/webhooks/{id}': { access: ADMIN, body: { enabled: false } },
  'DELETE /v1/webhooks/{id}': { access: ADMIN },
  'POST /v1/webhooks/{id}/rotate': { access: ADMIN, body: {} },
  'POST /v1/webhooks/{id}/test': { access: ADMIN },
  'POST /v1/mutes': { access: ADMIN, body: { until: '2000-01-02T03:04:05Z' } },
  'GET /v1/mutes': { access: OPERATE },
  'DELETE /v1/mutes/{id}': { access: ADMIN },
  'GET /v1/channels': { access: OPERATE },
  'POST /v1/channels/{name}/test': { access: ADMIN },
  'POST /v1/callbacks/test': { access: ADMIN, body: { url: 'not an address' } },
  'GET /v1/deliveries': { access: OPERATE },
  'GET /v1/deliveries/{id}': { access: OPERATE },
  'POST /v1/deliveries/{id}/replay': { access: ADMIN },
  'POST /v1/deliveries/replay': {
    access: ADMIN,
    body: { destination: 'webhook:callbacks' },
  },
};
