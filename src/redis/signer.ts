import { createHmac, timingSafeEqual } from 'node:crypto';

/** A signature for one purpose is invalid for every other. */
type Purpose = 'server' | 'worker' | 'job' | 'result';

/**
 * Why a signature is not accepted: it is missing, this side has no secret to verify it with, or the
 * secrets differ.
 */
export type SignatureProblem = 'unsigned' | 'no_secret' | 'other_secret';

export type Verified =
  | { kind: 'valid'; signer: MessageSigner }
  | { kind: 'invalid'; problem: SignatureProblem };

/**
 * Signs and verifies what a server and its workers exchange through Redis (HMAC-SHA-256). Signs
 * with the first secret and accepts all of them, so that a secret can be replaced. Without a secret
 * nothing is signed, and only unsigned content is accepted.
 */
export class MessageSigner {
  readonly #secrets: readonly string[];
  readonly #verified: Verified[];

  constructor(secrets: readonly string[]) {
    this.#secrets = secrets;
    this.#verified = secrets.map((secret, index) => {
      const signer = index === 0 && secrets.length === 1 ? this : new MessageSigner([secret]);
      return { kind: 'valid', signer };
    });
  }

  /**
   * Undefined without a secret. `content` is any JSON value with a fixed order of its members: best
   * a list.
   */
  sign(purpose: Purpose, content: unknown): string | undefined {
    const [secret] = this.#secrets;
    return secret === undefined ? undefined : hmac(secret, purpose, content).toString('base64url');
  }

  /**
   * `signer` signs with the secret that made the signature: a reply signed by it is accepted where
   * the signature was made.
   */
  verify(purpose: Purpose, content: unknown, signature: string | undefined): Verified {
    if (this.#secrets.length === 0)
      return signature === undefined
        ? { kind: 'valid', signer: this }
        : { kind: 'invalid', problem: 'no_secret' };
    if (signature === undefined) return { kind: 'invalid', problem: 'unsigned' };
    const given = Buffer.from(signature, 'base64url');
    const index = this.#secrets.findIndex((secret) => {
      const expected = hmac(secret, purpose, content);
      return given.length === expected.length && timingSafeEqual(given, expected);
    });
    return this.#verified[index] ?? { kind: 'invalid', problem: 'other_secret' };
  }
}

/** From the settings of Redis. */
export function createMessageSigner(settings: {
  secret?: string | undefined;
  previous_secret?: string | undefined;
}): MessageSigner {
  return new MessageSigner(
    [settings.secret, settings.previous_secret].filter((secret) => secret !== undefined),
  );
}

function hmac(secret: string, purpose: Purpose, content: unknown): Buffer {
  return createHmac('sha256', secret)
    .update(`dawatch:${purpose}:${JSON.stringify(content)}`)
    .digest();
}
