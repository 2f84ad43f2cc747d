import { InvalidArgumentError, Option } from 'commander';

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

const MAX_MS = 366 * UNIT_MS.d;

/**
 * Parses a duration such as "90s", "10m", "24h", "7d" or "250ms" into milliseconds. The maximum is
 * 366 days.
 */
export function parseDuration(text: string): number {
  const [, amount, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text) ?? [];
  if (amount === undefined || unit === undefined)
    throw new InvalidArgumentError('Expected a duration like 90s, 10m, 24h or 7d.');
  const ms = Number(amount) * UNIT_MS[unit as keyof typeof UNIT_MS];
  if (ms > MAX_MS) throw new InvalidArgumentError('Expected at most 366d.');
  return ms;
}

/**
 * Returns an option whose value is a duration in milliseconds. The help shows the limits and the
 * default as written here.
 */
export function durationOption(
  name: string,
  description: string,
  { least, most, fallback }: { least: string; most: string; fallback: string },
): Option {
  return new Option(`${name} <duration>`, `${description}, ${least} to ${most}`)
    .argParser(durationWithin(least, most))
    .default(parseDuration(fallback), fallback);
}

function durationWithin(least: string, most: string): (text: string) => number {
  const [leastMs, mostMs] = [parseDuration(least), parseDuration(most)];
  return (text) => {
    const ms = parseDuration(text);
    if (ms < leastMs || ms > mostMs)
      throw new InvalidArgumentError(`Expected ${least} to ${most}.`);
    return ms;
  };
}
