/** The known name that differs least from `text`; undefined: none is near enough to have been meant. */
export function closest(text: string, known: readonly string[]): string | undefined {
  // Two, since a swap of neighbours counts as two; of the shortest names that would be another name.
  const limit = text.length < 4 ? 1 : Math.max(2, Math.floor(text.length / 3));
  const ranked = known.map((name) => ({ name, distance: distanceOf(text.toLowerCase(), name.toLowerCase()) }));
  const [best] = ranked.sort((a, b) => a.distance - b.distance);
  return best && best.distance <= limit ? best.name : undefined;
}

/** How many characters must be added, removed or replaced (Levenshtein). */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, char] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 0; j < b.length; j++)
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (char === b[j] ? 0 : 1)));
    row = next;
  }
  return row[b.length] ?? 0;
}
