import { createHmac, randomBytes } from 'node:crypto';
import type { LedgerDatabase } from '../ledger/ledger-database.ts';
import { findPage, type Walk } from '../ledger/page.ts';
import { type Actor, SERVER } from '../lib/actor.ts';

/** Every action in the audit, and what its `subject` names. */
export const AUDIT_ACTIONS = {
  'users.get': 'a lookup of one user',
  'users.list': 'a list of users',
  'tokens.create': 'a token was created; subject: its id; detail: its name and role',
  'tokens.revoke': 'a token was revoked; subject: its id; detail: its name',
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

/** refused: by dawatch or the upstream. failed: no usable response. busy: not sent. */
export const AUDIT_RESULTS = ['found', 'not_found', 'refused', 'failed', 'busy', 'done'] as const;
export type AuditResult = (typeof AUDIT_RESULTS)[number];

export type StoredEntry = {
  seq: number;
  at: number;
  caller: string;
  credentialId: number | null;
  address: string | null;
  action: string;
  result: string;
  subject: string | null;
  detail: string | null;
  /** Keyed hash of the address of a looked-up person; null if the entry is about no person. */
  emailHash: string | null;
  emailMasked: string | null;
  callerPerson: string | null;
};

/** `subject`: see AUDIT_ACTIONS. `detail`: a short text without personal data. */
type AuditedAction = {
  action: AuditAction;
  result?: AuditResult;
  subject?: string | null;
  detail?: string | null;
  /** The requested address. It is stored as a keyed hash and masked, such as "a…@example.com". */
  email?: string | null;
  /** The token of a forwarded caller. A short hash of it is added to the name of the actor. */
  bearer?: string | undefined;
};

/** All conditions apply. Times are epoch ms; `since` includes its time, `until` excludes it. */
type AuditFilter = {
  /** Name of the credential, or of the person behind it. */
  caller?: string | undefined;
  /** The address of a looked-up person in any spelling, or its keyed hash. */
  email?: string | undefined;
  actions?: readonly AuditAction[] | undefined;
  subject?: string | undefined;
  since?: number | undefined;
  until?: number | undefined;
};

/** Distinguishes unknown secrets, but is too short to identify a secret elsewhere. */
const SHORT_HASH_CHARS = 8;

/** The append-only audit of changes and user lookups. Throws LedgerError. */
export class AuditTrail {
  readonly #db: LedgerDatabase;
  readonly #key: Buffer;

  constructor(database: LedgerDatabase) {
    this.#db = database;
    this.#key = readOrCreateKey(database);
  }

  /** Stores an entry durably; inside a transaction, together with the change it describes. */
  append(actor: Actor, at: number, entry: AuditedAction): void {
    const { action, result = 'done', subject = null, detail = null, email, bearer } = entry;
    const { credentialId, address } = actor;
    const caller =
      bearer === undefined
        ? actor.name
        : `${actor.name}:${this.#hash(bearer).slice(0, SHORT_HASH_CHARS)}`;
    const normal = email ? normalOf(email) : '';
    this.#db.run`
      INSERT INTO audit (at, caller, credential_id, address, action, result, subject, detail, email_hash, email_masked)
      VALUES (${at}, ${caller}, ${credentialId}, ${address}, ${action}, ${result}, ${subject}, ${detail},
              ${normal ? this.#hash(normal) : null}, ${normal ? masked(normal) : null})`;
  }

  /** In one transaction. `entryOf`: nothing if nothing was changed. */
  change<T>(
    actor: Actor,
    at: number,
    change: () => T,
    entryOf: (result: T) => AuditedAction | false | undefined,
  ): T {
    return this.#db.transaction(() => {
      const result = change();
      const entry = entryOf(result);
      if (entry) this.append(actor, at, entry);
      return result;
    });
  }

  /** Deletes up to `limit` entries older than `before`, and records that. Returns their number. */
  prune(before: number, now: number, limit: number): number {
    return this.#db.transaction(() => {
      const oldest = this.#db.rows<{ seq: number; at: number }>`
        SELECT seq, at FROM audit ORDER BY seq LIMIT ${limit}`;
      const kept = oldest.findIndex(({ at }) => at >= before);
      const newest = oldest.at(kept === -1 ? -1 : kept - 1);
      if (kept === 0 || !newest) return 0;
      this.append(SERVER, now, { action: 'audit.prune', subject: String(newest.seq) });
      return this.#db.run`DELETE FROM audit WHERE seq <= ${newest.seq}`.changes;
    });
  }

  get oldestAt(): number | undefined {
    return this.#db.value`SELECT at FROM audit ORDER BY seq LIMIT 1`;
  }

  get newest(): number {
    return this.#db.value<number>`SELECT seq FROM audit ORDER BY seq DESC LIMIT 1` ?? 0;
  }

  /**
   * Returns entries, newest first; `before`: to continue, null at the end. A page may have fewer
   * than `limit`, even none, although more follow.
   */
  list(query: AuditFilter & { limit: number; before?: number | undefined }): {
    entries: StoredEntry[];
    nextBefore: number | null;
  } {
    const {
      limit,
      before = Number.MAX_SAFE_INTEGER,
      caller = null,
      actions,
      subject = null,
      email,
      ...times
    } = query;
    const { since = Number.MIN_SAFE_INTEGER, until = Number.MAX_SAFE_INTEGER } = times;
    const parameters = {
      p0: before,
      caller,
      actions: actions ? JSON.stringify(actions) : null,
      subject,
      since,
      until,
      ...(email !== undefined && { emailHash: this.#emailHash(email) }),
    };
    const walk = { ...WALK, parameters, ranges: [email === undefined ? ALL : OF_EMAIL] };
    const read = (seq: number) => this.#db.row<StoredEntry>(BY_SEQ, seq);
    const { page, next } = this.#db.snapshot(() => findPage(this.#db, walk, { limit, read }));
    return { entries: page, nextBefore: next === null ? null : Number(next[0]) };
  }

  /** Returns up to `limit` entries after that position, oldest first; none at the end. */
  after(seq: number, limit: number): StoredEntry[] {
    return this.#db.rows(OLDEST, seq, limit);
  }

  #emailHash(email: string): string {
    return HASH.test(email) ? email : this.#hash(normalOf(email));
  }

  /** Returns a hash that only the holder of this ledger can compute. */
  #hash(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('hex');
  }
}

const SELECT_ENTRY = `
  SELECT a.seq, a.at, a.caller, a.credential_id AS credentialId, a.address, a.action, a.result, a.subject,
         a.detail, a.email_hash AS emailHash, a.email_masked AS emailMasked, o.name AS callerPerson
  FROM audit a LEFT JOIN people o ON o.credential = a.credential_id`;
const BY_SEQ = `${SELECT_ENTRY} WHERE a.seq = +?`;
const OLDEST = `${SELECT_ENTRY} WHERE a.seq > ? ORDER BY a.seq LIMIT ?`;

const WALK: Omit<Walk, 'ranges' | 'parameters'> = {
  id: 'a.seq',
  keys: ['a.seq'],
  direction: 'DESC',
  match: `(@caller IS NULL OR a.caller = @caller
      OR a.credential_id IN (SELECT credential FROM people WHERE name = @caller))
    AND (@actions IS NULL OR a.action IN (SELECT value FROM json_each(@actions)))
    AND (@subject IS NULL OR a.subject = @subject) AND a.at >= @since AND a.at < @until`,
};
const ALL = 'audit a WHERE a.seq < +@p0';
const OF_EMAIL = 'audit a WHERE a.email_hash = @emailHash AND a.seq < +@p0';
const HASH = /^[0-9a-f]{64}$/;

function normalOf(email: string): string {
  return email.trim().toLowerCase();
}

function masked(email: string): string {
  const at = email.lastIndexOf('@');
  const initial = at > 1 ? email.slice(0, 1) : '';
  return at < 1 ? '…' : `${initial}…${email.slice(at)}`;
}

function readOrCreateKey(database: LedgerDatabase): Buffer {
  const found = readKey(database);
  if (found) return found;
  const key = randomBytes(32).toString('hex');
  database.run`INSERT INTO meta (key, value) VALUES ('audit_key', ${key}) ON CONFLICT DO NOTHING`;
  return readKey(database) as Buffer;
}

function readKey(database: LedgerDatabase): Buffer | undefined {
  const key = database.value<string>("SELECT value FROM meta WHERE key = 'audit_key'");
  return key === undefined ? undefined : Buffer.from(key, 'hex');
}
