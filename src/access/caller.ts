import type { Rights } from './scopes.ts';

/** Ids for the credentials in the settings, which have no id in the ledger. */
export const CONFIGURED_CREDENTIALS = { service: 0, admin: -1 } as const;

export type Caller = Rights & {
  /** null for a configured credential. */
  id: number | null;
  /** For the audit. */
  name: string;
};

/** Returns the key by which limits are shared: the credential. */
export function clientOf(caller: Caller | undefined): string {
  return caller === undefined ? '' : `${caller.id ?? caller.name}`;
}

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
