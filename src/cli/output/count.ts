import { InvalidArgumentError } from 'commander';

/** A whole number in digits; whether it is within bounds is the server's to say. */
export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}
