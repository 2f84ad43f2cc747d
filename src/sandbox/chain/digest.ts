import { hash } from 'node:crypto';

/** 64 hex digits that are the same for the same parts: the sandbox's source of ids, hashes and amounts. */
export function digest(...parts: readonly (string | number)[]): string {
  return hash('sha256', parts.join('\n'));
}

/** A version-4 UUID made of a digest. */
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

/** A signed 32-bit number made of a digest, as generators want it for a seed. */
export function seedOf(hex: string): number {
  return Number.parseInt(hex.slice(0, 8), 16) | 0;
}

/** An unsigned amount as a decimal string of 20 to 39 digits (the upstream keeps 128 bits), made of a digest. */
export function feesOf(hex: string): string {
  const narrowBits = BigInt(Number.parseInt(hex.slice(32, 34), 16) % 61);
  // The highest bit is set so that the narrowest amount is still far beyond what a JavaScript number can hold.
  return ((BigInt(`0x${hex.slice(0, 32)}`) | (1n << 127n)) >> narrowBits).toString();
}
