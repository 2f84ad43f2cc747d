/** The settings can't be started with. The message says what to do. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
