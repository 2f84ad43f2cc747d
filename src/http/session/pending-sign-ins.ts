import { LruMap } from 'toad-cache';
import { networkOf } from '../../platform/addresses.ts';
import { FailureBucket } from '../access/failure-bucket.ts';

/** What a sign-in at a provider must come back with. `to`: the page of the dashboard that was open. */
export type PendingSignIn = { browser: string; nonce: string; verifier: string; to: string };

export const SIGN_IN_S = 600;
const MAX_PENDING = 10_000;
/** Limit of sign-ins that one address begins in a minute, so that it cannot evict those of others. */
const MAX_PER_MINUTE = 60;

/** The sign-ins that people have begun at the provider. Lost at a restart: people then begin again. */
export class PendingSignIns {
  readonly #pending = new LruMap<PendingSignIn>(MAX_PENDING, SIGN_IN_S * 1_000);
  readonly #begun = new FailureBucket({ max: MAX_PER_MINUTE, windowMs: 60_000, maxKeys: MAX_PENDING });

  /** Counts a sign-in, which costs requests to the provider. Returns undefined, or the milliseconds until the address may begin it. */
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
