/**
 * Changes of tracked submissions. Each returns a text about its effect. The server decides by the
 * current status, which may differ from the shown one. All throw the errors of the methods of Api.
 * @typedef {{ submission_id: string, upstream: string }} Named
 */

/** @param {string} id */
export function pathOf(id) {
  return `v1/submissions/${encodeURIComponent(id)}`;
}

/**
 * @param {import('../data/api.js').Api} api @param {Named} submission @returns {Promise<string>}
 */
export async function cancel(api, { submission_id }) {
  const { status } = await api.delete(pathOf(submission_id));
  return status === 'cancelled' ? 'Cancelled.' : `Unchanged: it has ended as ${status}.`;
}

/**
 * @param {import('../data/api.js').Api} api @param {Named} submission @returns {Promise<string>}
 */
export async function retrack(api, { submission_id, upstream }) {
  const { retracked, submissions } = await api.post('v1/submissions', {
    submission_id,
    upstream,
    retrack: true,
  });
  return retracked === 1 ? 'Tracked again.' : `Unchanged: it is ${submissions[0]?.status}.`;
}
