/** The server cannot start with these settings. The message states how to fix it. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
