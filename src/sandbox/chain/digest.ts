import { hash } from 'node:crypto';

/** Returns 64 hex digits determined by the parts: the source of ids, hashes and amounts. */
export function digest(...parts: readonly (string | number)[]): string {
  return hash('sha256', parts.join('\n'));
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
