/** Waits for `work` up to `limitMs`. A rejection counts as done. */
export async function withTimeout(
  limitMs: number,
  work: PromiseLike<unknown>,
): Promise<'done' | 'late'> {
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<'late'>((resolve) => {
    timer = setTimeout(() => resolve('late'), limitMs);
  });
  try {
    return await Promise.race([
      work.then(
        () => 'done' as const,
        () => 'done' as const,
      ),
      limit,
    ]);
  } finally {
    clearTimeout(timer);
  }
}
