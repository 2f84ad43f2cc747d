/** "1 submission", "2 submissions". */
export function submissions(count: number): string {
  return count === 1 ? '1 submission' : `${count} submissions`;
}
