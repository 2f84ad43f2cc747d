import { InvalidArgumentError } from 'commander';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** "90s", "10m", "24h", "7d", "250ms" as milliseconds. */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (amount === undefined || unit === undefined)
    throw new InvalidArgumentError('Expected a duration like 90s, 10m, 24h or 7d.');
  return Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
}
