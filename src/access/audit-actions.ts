/** Every action in the audit, and what its `subject` names. */
export const AUDIT_ACTIONS = {
  'users.get': 'a lookup of one user',
  'users.list': 'a list of users',
  'tokens.create': 'a token was created; subject: its id',
  'tokens.revoke': 'a token was revoked; subject: its id',
  'sessions.create': 'a person signed in to the dashboard; detail: how',
  'sessions.delete': 'a person signed out of the dashboard',
  'webhooks.create': 'a webhook was created, and its secret shown; subject: its id',
  'webhooks.update': 'a webhook was changed; subject: its id',
  'webhooks.delete': 'a webhook was deleted; subject: its id',
  'webhooks.rotate': 'the secret of a webhook was replaced, and the new one shown; subject: its id',
  'webhooks.test': 'a test event was sent; subject: the webhook',
  'channels.test': 'a test event was sent; subject: the channel',
  'mutes.create': 'alerts were muted; subject: the id of the mute',
  'mutes.delete': 'a mute was ended; subject: its id',
  'deliveries.replay': 'deliveries were sent again; subject: the delivery or the destination',
  'submissions.update':
    'options of a submission were changed; subject: its id; detail: their names',
  'submissions.cancel': 'a submission was cancelled; subject: its id',
  'audit.read': 'entries were listed, for the first time of the caller in an hour',
  'audit.export': 'the audit was exported',
  'auth.refused':
    'a credential was refused, for the first time of its address in an hour; detail: the reason',
  'audit.prune': 'entries older than 400 days were deleted; subject: the newest of them',
} as const;
export type AuditAction = keyof typeof AUDIT_ACTIONS;

/**
 * refused: by dawatch or the upstream. failed: no usable response of the upstream. busy: not sent.
 * done: the change is stored.
 */
export const AUDIT_RESULTS = ['found', 'not_found', 'refused', 'failed', 'busy', 'done'] as const;
export type AuditResult = (typeof AUDIT_RESULTS)[number];
