import { queryOf, type SendRequest } from '../request.ts';

/**
 * A set of scopes. service: submissions. user: lookups of single users. operator: reads
 * submissions, webhooks, deliveries, channels and mutes. admin: everything.
 */
export type Role = 'service' | 'user' | 'operator' | 'admin';

/** What a credential may do; admin includes all. */
export type Scope =
  | 'submissions:read'
  | 'submissions:write'
  | 'users:read'
  | 'webhooks:write'
  | 'operations:read'
  | 'admin';

/** A credential of the ledger, without its secret. Times are ISO 8601 in UTC. */
export type Credential = {
  id: number;
  /** Name of the client; appears in the audit. */
  name: string;
  /**
   * E-mail address or subject of the person who signs in with this credential by OpenID Connect;
   * null for the token of a client.
   */
  person: string | null;
  /** null: it has scopes of its own. */
  role: Role | null;
  /** All scopes of the credential. */
  scopes: Scope[];
  /** An expired credential is valid again if it gets a later expiry. */
  state: 'valid' | 'expired' | 'revoked';
  created_at: string;
  /** null: it does not expire. */
  expires_at: string | null;
  /** Last use of the current secret, to the minute. */
  last_used_at: string | null;
  revoked_at: string | null;
  /** Replaced secrets that are still accepted, newest first. */
  replaced_secrets: { valid_until: string; last_used_at: string | null }[];
};

/** `secret`: the token; returned only once. */
export type CredentialWithSecret = Credential & { secret: string };

export type CredentialPage = { credentials: Credential[]; next_cursor: string | null };

/** Has a role, or scopes of its own. */
export type NewCredential = { name: string; expires_at?: string | null } & (
  | { role: Role; scopes?: undefined }
  | { scopes: readonly Scope[]; role?: undefined }
);

/** Absent fields are not changed. */
export type CredentialPatch = { name?: string; expires_at?: string | null };

/**
 * Credentials of a dawatch server. Needs the role admin. Methods throw ApiError or ConnectionError.
 */
export class CredentialRequests {
  readonly #send: SendRequest;

  constructor(send: SendRequest) {
    this.#send = send;
  }

  create(credential: NewCredential): Promise<CredentialWithSecret> {
    return this.#send('POST', '/v1/credentials', credential);
  }

  /**
   * Returns a page, newest first. `limit`: 1 to 1,000, default 100. `cursor`: `next_cursor` of the
   * previous page.
   */
  list(query: { limit?: number; cursor?: string } = {}): Promise<CredentialPage> {
    return this.#send('GET', `/v1/credentials${queryOf(query)}`);
  }

  get(id: number): Promise<Credential> {
    return this.#send('GET', `/v1/credentials/${id}`);
  }

  /**
   * Throws ApiError with status 409 if it is revoked, or if no other credential with the scope
   * admin would stay valid.
   */
  update(id: number, patch: CredentialPatch): Promise<Credential> {
    return this.#send('PATCH', `/v1/credentials/${id}`, patch);
  }

  /**
   * Replaces the secret. The old secret is accepted for `overlap_s` more seconds (default: one day;
   * 0: not at all).
   */
  rotate(id: number, options: { overlap_s?: number } = {}): Promise<CredentialWithSecret> {
    return this.#send('POST', `/v1/credentials/${id}/rotate`, options);
  }

  /**
   * Makes the revoked credential of a person valid again. Throws ApiError with status 409 for the
   * credential of a client.
   */
  readmit(id: number): Promise<Credential> {
    return this.#send('POST', `/v1/credentials/${id}/readmit`);
  }

  /**
   * Revokes a credential: its requests are then refused. Throws ApiError with status 409 for the
   * last valid one with the scope admin.
   */
  async revoke(id: number): Promise<void> {
    await this.#send('DELETE', `/v1/credentials/${id}`);
  }
}
