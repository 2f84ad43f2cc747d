/** One variant of each option, by name. */
export type Row = Record<string, string>;

/**
 * Returns rows in which every two variants of different options occur together at least once.
 * Greedy, so not the fewest rows, and always the same ones.
 */
export function pairwise(options: Record<string, readonly string[]>): Row[] {
  const names = Object.keys(options);
  const uncovered = new Set(
    names.flatMap((a, i) =>
      names
        .slice(i + 1)
        .flatMap((b) =>
          (options[a] ?? []).flatMap((x) => (options[b] ?? []).map((y) => pairOf([a, x], [b, y]))),
        ),
    ),
  );
  const rows: Row[] = [];
  for (const pair of uncovered) {
    // Pairs that an earlier row covered are no longer in the set.
    const row = Object.fromEntries(JSON.parse(pair) as Choice[]);
    for (const name of names)
      row[name] ??= best(options[name] ?? [], (variant) => coveredBy(row, [name, variant]).length);
    for (const name of names)
      for (const covered of coveredBy(row, [name, row[name] as string])) uncovered.delete(covered);
    rows.push(row);
  }
  return rows;

  function coveredBy(row: Row, choice: Choice): string[] {
    return Object.entries(row)
      .filter(([name]) => name !== choice[0])
      .map((other) =>
        names.indexOf(choice[0]) < names.indexOf(other[0])
          ? pairOf(choice, other)
          : pairOf(other, choice),
      )
      .filter((pair) => uncovered.has(pair));
  }
}

type Choice = [option: string, variant: string];

function pairOf(a: Choice, b: Choice): string {
  return JSON.stringify([a, b]);
}

function best(variants: readonly string[], scoreOf: (variant: string) => number): string {
  return variants.reduce((a, b) => (scoreOf(b) > scoreOf(a) ? b : a));
}
