/**
 * What a credential may do; each route requires one scope. operations:read: webhooks without their
 * secrets, deliveries, channels and mutes. webhooks:write: changes and tests of webhooks, and
 * replays. admin includes all.
 */
export const SCOPES = [
  'submissions:read',
  'submissions:write',
  'users:read',
  'webhooks:write',
  'operations:read',
  'admin',
] as const;
export type Scope = (typeof SCOPES)[number];

/**
 * Named sets of scopes. service: submissions. user: lookups of single users. operator: reads
 * submissions, webhooks, deliveries, channels and mutes.
 */
export const ROLES = ['service', 'user', 'operator', 'admin'] as const;
export type Role = (typeof ROLES)[number];

const SCOPES_OF: Record<Role, ReadonlySet<Scope>> = {
  service: new Set<Scope>(['submissions:read', 'submissions:write']),
  user: new Set<Scope>(['users:read']),
  operator: new Set<Scope>(['submissions:read', 'operations:read']),
  admin: new Set<Scope>(SCOPES),
};

/**
 * The rights of a credential. `role`: null if it has scopes of its own. `scopes`: for admin, all
 * scopes.
 */
export type Rights = { role: Role | null; scopes: ReadonlySet<Scope> };

export function rightsOfRole(role: Role): Rights {
  return { role, scopes: SCOPES_OF[role] };
}

export function rightsOfScopes(scopes: readonly Scope[]): Rights {
  const given = new Set(scopes);
  return {
    role: null,
    scopes: new Set(SCOPES.filter((scope) => given.has(scope) || given.has('admin'))),
  };
}

/** The role in the ledger of a credential with scopes of its own. */
const OWN_SCOPES = 'scoped';

/** Returns rights in their stored form, in which a role has no scopes. */
export function toStoredRights({ role, scopes }: Rights): { role: string; scopes: string | null } {
  return role === null
    ? { role: OWN_SCOPES, scopes: [...scopes].join(' ') }
    : { role, scopes: null };
}

/**
 * Returns stored rights; undefined if they have a role or a scope that this version does not know.
 */
export function fromStoredRights({
  role,
  scopes,
}: {
  role: string;
  scopes: string | null;
}): Rights | undefined {
  if (scopes === null) {
    const known = ROLES.find((name) => name === role);
    return known && rightsOfRole(known);
  }
  const names = scopes.split(' ');
  const known = SCOPES.filter((scope) => names.includes(scope));
  return role === OWN_SCOPES && known.length > 0 && known.length === names.length
    ? rightsOfScopes(known)
    : undefined;
}

/** Ids for the credentials in the settings, which have no id in the ledger. */
export const CONFIGURED_CREDENTIALS = { service: 0, admin: -1 } as const;

export type Caller = Rights & {
  /** null for a configured credential. */
  id: number | null;
  /** For the audit. */
  name: string;
};

/**
 * Returns the number that the ledger stores as the tracking credential of a submission; null: not
 * known.
 */
export function credentialNumber(caller: Caller | undefined): number | null {
  if (!caller) return null;
  return caller.id ?? CONFIGURED_CREDENTIALS[caller.role === 'admin' ? 'admin' : 'service'];
}

/** Returns the owner of a secret by its SHA-256; undefined if it is unknown, expired or revoked. */
export type Credentials = (hash: Buffer) => Caller | undefined;
