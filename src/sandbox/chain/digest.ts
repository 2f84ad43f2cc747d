import { hash } from 'node:crypto';

/** Returns 64 hex digits determined by the parts: the source of ids, hashes and amounts. */
export function digest(...parts: readonly (string | number)[]): string {
  return hash('sha256', parts.join('\n'));
}

const NUMBER_DIGITS = 8;

/**
 * Returns the hash of a block without a header: 64 hex digits, which end with the block number to
 * find it without a list. `chain`: usually the seed. Zeros for -1.
 */
export function blockHash(chain: string | number, blockNumber: number): string {
  if (blockNumber < 0) return '0'.repeat(64);
  const number = blockNumber.toString(16).padStart(NUMBER_DIGITS, '0');
  return `${digest('block', chain, blockNumber).slice(NUMBER_DIGITS)}${number}`;
}

/** Returns the number with which such a hash ends. */
export function numberInHash(hash: string): number {
  return Number.parseInt(hash.slice(-NUMBER_DIGITS), 16);
}

/** Returns a version-4 UUID derived from a digest. */
export function uuidOf(hex: string): string {
  const variant = ((Number.parseInt(hex.charAt(16), 16) & 0x3) | 0x8).toString(16);
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `${variant}${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ].join('-');
}

/** Returns a signed 32-bit seed derived from a digest. */
export function seedOf(hex: string): number {
  return Number.parseInt(hex.slice(0, 8), 16) | 0;
}

/**
 * Returns an unsigned amount of up to 128 bits as a decimal string of 20 to 39 digits, derived from
 * a digest.
 */
export function feesOf(hex: string): string {
  const narrowBits = BigInt(Number.parseInt(hex.slice(32, 34), 16) % 61);
  // With the highest bit set, even the smallest amount exceeds the range of a JavaScript number.
  return ((BigInt(`0x${hex.slice(0, 32)}`) | (1n << 127n)) >> narrowBits).toString();
}
