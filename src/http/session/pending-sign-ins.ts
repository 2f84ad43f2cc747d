import { LruMap } from 'toad-cache';
import { networkOf } from '../../platform/addresses.ts';
import { FailureBucket } from '../access/failure-bucket.ts';

/** Values that the redirect of the provider must match. `to`: the page of the dashboard that was open. */
export type PendingSignIn = {
  browser: string;
  nonce: string;
  verifier: string;
  to: string;
};

export const SIGN_IN_S = 600;
const MAX_PENDING = 10_000;
/** Limit of sign-ins that one address begins in a minute, so that it cannot evict those of others. */
const MAX_PER_MINUTE = 60;

/** The sign-ins that people have begun at the provider. They are in memory: after a restart, people begin again. */
export class PendingSignIns {
  readonly #pending = new LruMap<PendingSignIn>(MAX_PENDING, SIGN_IN_S * 1_000);
  readonly #begun = new FailureBucket({ max: MAX_PER_MINUTE, windowMs: 60_000, maxKeys: MAX_PENDING });

  /** Counts a sign-in of an address, because each costs requests to the provider. Returns the milliseconds until it is allowed; undefined: now. */
  admit(address: string): number | undefined {
    const network = networkOf(address);
    const retryAfterMs = this.#begun.retryAfterMs(network);
    if (retryAfterMs === undefined) this.#begun.begin(network)(true);
    return retryAfterMs;
  }

  /** `state` identifies the sign-in for ten minutes. */
  begin(state: string, signIn: PendingSignIn): void {
    this.#pending.set(state, signIn);
  }

  /** Returns the sign-in, only once, and only to the browser that began it. */
  take(state: string, browser: string): PendingSignIn | undefined {
    const signIn = this.#pending.get(state);
    if (signIn === undefined || signIn.browser !== browser) return undefined;
    this.#pending.delete(state);
    return signIn;
  }
}
