/**
 * Returns the known name most similar to `text`, or undefined if none is similar enough to be a
 * misspelling.
 */
export function closest(text: string, known: readonly string[]): string | undefined {
  // At least two edits, because two swapped characters count as two. Names below four characters
  // would match too much.
  const limit = text.length < 4 ? 1 : Math.max(2, Math.floor(text.length / 3));
  const ranked = known.map((name) => ({
    name,
    distance: distanceOf(text.toLowerCase(), name.toLowerCase()),
  }));
  const [best] = ranked.sort((a, b) => a.distance - b.distance);
  return best && best.distance <= limit ? best.name : undefined;
}

/** Returns the Levenshtein distance. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++)
      next.push(
        Math.min(
          (row[j + 1] ?? 0) + 1,
          (next[j] ?? 0) + 1,
          (row[j] ?? 0) + (char === b[j] ? 0 : 1),
        ),
      );
    row = next;
  }
  return row[b.length] ?? 0;
}
