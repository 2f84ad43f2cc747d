import type { FastifyInstance } from 'fastify';
import { logOf } from '../http/request-log.ts';
import { LedgerError } from '../ledger/errors.ts';
import { networkOf } from '../lib/addresses.ts';
import type { Clock } from '../lib/clock.ts';
import type { Identity } from './access.ts';
import type { AuditTrail } from './audit-store.ts';

/**
 * absent: no credential where one is required. malformed, unknown: not a valid credential. locked:
 * not looked up, because too many wrong ones came from the address. refused: a bearer that the
 * upstream refused or that was not forwarded. cross_origin: the cookie of a session, sent by a page
 * of another origin. oidc: a sign-in at the provider that was refused.
 */
export const AUTHENTICATION_FAILURES = [
  'absent',
  'malformed',
  'unknown',
  'locked',
  'refused',
  'cross_origin',
  'oidc',
] as const;
export type AuthenticationFailure = (typeof AUTHENTICATION_FAILURES)[number];

/** Reports and logs every failed authentication, once per request, before the response is sent. */
export function reportFailedAuthentications(
  app: FastifyInstance,
  onFailed: (reason: AuthenticationFailure, address: string) => void,
): void {
  // Without a child log for each request, because most of these lines are deduplicated.
  const log = logOf(app);
  app.addHook('onSend', (request, { statusCode }, _payload, done) => {
    const reason = request.identity && failureOf(request.identity, statusCode);
    if (reason === undefined) {
      done();
      return;
    }
    const { id, method, clientAddress, routeOptions } = request;
    onFailed(reason, clientAddress);
    const fields = {
      request_id: id,
      reason,
      address: clientAddress,
      method,
      route: routeOptions.url,
    };
    // Browsers and scanners cause these constantly, and no credential was tried.
    if (reason === 'absent') log.debug(fields, 'auth.failed');
    else log.warn(fields, 'auth.failed');
    done();
  });
}

function failureOf(identity: Identity, statusCode: number): AuthenticationFailure | undefined {
  switch (identity.kind) {
    case 'unknown':
    case 'locked':
      // Counted on open routes, too: a wrong credential was tried.
      return identity.kind;
    case 'absent':
    case 'malformed':
    case 'cross_origin':
      return statusCode === 401 ? identity.kind : undefined;
    case 'forwarded':
      return statusCode === 401 || statusCode === 403 ? 'refused' : undefined;
    case 'known':
      return undefined;
    default:
      return identity satisfies never;
  }
}

/**
 * Delay of the entry for the first refusal of an address, so that refusals shortly after it share
 * the entry.
 */
const FIRST_MS = 1_000;
/** Interval of the entries that sum up further refusals. */
const WINDOW_MS = 3_600_000;
/**
 * Maximum number of addresses with entries of their own in a window. Further addresses share one
 * entry, so that the audit cannot fill the disk.
 */
const MAX_ADDRESSES = 100;

type Refusals = { since: number; counts: Map<AuthenticationFailure, number> };

/**
 * Writes refused sign-ins to the audit: an entry for the first refusals of an address, and one for
 * all others within the hour. That is at most 201 entries per hour. Requests without a credential
 * are not sign-ins. A crash loses the counts of the hour.
 */
export class RefusedSignIns {
  readonly #audit: AuditTrail;
  readonly #clock: Clock;
  /** Refusals that are not written yet, by address; null: all addresses above the limit. */
  readonly #pending = new Map<string | null, Refusals>();
  /** Addresses with entries of their own in this window. */
  readonly #known = new Set<string>();
  /** Addresses whose first entry is written. */
  readonly #written = new Set<string | null>();
  #cancelFirst: (() => void) | undefined;
  #cancelWindow: (() => void) | undefined;

  constructor({ audit, clock }: { audit: AuditTrail; clock: Clock }) {
    this.#audit = audit;
    this.#clock = clock;
  }

  add(reason: AuthenticationFailure, clientAddress: string): void {
    if (reason === 'absent') return;
    const address = this.#keyOf(networkOf(clientAddress));
    const { counts } = this.#refusalsOf(address);
    counts.set(reason, (counts.get(reason) ?? 0) + 1);
    if (!this.#written.has(address))
      this.#cancelFirst ??= this.#clock.after(FIRST_MS, () => this.#writeFirst());
    this.#cancelWindow ??= this.#clock.after(WINDOW_MS, () => this.#endWindow());
  }

  /** Writes everything that is not written yet. */
  close(): void {
    this.#cancelFirst?.();
    this.#endWindow();
  }

  #keyOf(address: string): string | null {
    if (this.#known.size < MAX_ADDRESSES) this.#known.add(address);
    return this.#known.has(address) ? address : null;
  }

  #refusalsOf(address: string | null): Refusals {
    const refusals = this.#pending.get(address) ?? { since: this.#clock.now(), counts: new Map() };
    this.#pending.set(address, refusals);
    return refusals;
  }

  #writeFirst(): void {
    this.#cancelFirst = undefined;
    this.#write([...this.#pending.keys()].filter((address) => !this.#written.has(address)));
  }

  #endWindow(): void {
    this.#cancelWindow?.();
    this.#cancelWindow = undefined;
    this.#write([...this.#pending.keys()]);
    this.#written.clear();
    this.#known.clear();
  }

  /**
   * Refusals that cannot be written, for example because the disk is full, are written with later
   * ones.
   */
  #write(addresses: readonly (string | null)[]): void {
    if (addresses.length === 0) return;
    const now = this.#clock.now();
    try {
      this.#audit.appendAll(
        addresses.map((address) => this.#entryOf(address)),
        now,
      );
    } catch (error) {
      if (!(error instanceof LedgerError)) throw error;
      return;
    }
    for (const address of addresses) {
      this.#pending.delete(address);
      this.#written.add(address);
    }
  }

  #entryOf(address: string | null) {
    const { since, counts } = this.#refusalsOf(address);
    const reasons = [...counts].map(([reason, count]) => `${reason} ${count}`).join(', ');
    const others = address === null ? 'other addresses, ' : '';
    return {
      actor: { name: 'unauthenticated', credentialId: null, address },
      entry: {
        action: 'auth.refused',
        result: 'refused',
        detail: `${others}${reasons}, since ${new Date(since).toISOString()}`,
      },
    } as const;
  }
}
