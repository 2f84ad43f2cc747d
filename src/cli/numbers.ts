import { InvalidArgumentError } from 'commander';

/** Parses a whole number. The server checks its range. */
export function parseCount(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new InvalidArgumentError('Expected a whole number.');
  return Number(text);
}

/** Returns a parser for the numbers that a command prints in its first column. */
export function numberFrom(command: string): (text: string) => number {
  return (text) => {
    if (!/^[1-9]\d{0,14}$/.test(text))
      throw new InvalidArgumentError(`Expected a number from \`${command}\`.`);
    return Number(text);
  };
}
