/**
 * Keeps SIGHUP from ending the process. The signals, including those before, call the function
 * given to the returned one; several that arrive while it runs count as one.
 */
export function catchHangups(): (reload: () => Promise<unknown>) => void {
  let handle: (() => Promise<unknown>) | undefined;
  let isPending = false;
  let isRunning = false;
  const run = async () => {
    if (!handle || isRunning) return;
    isRunning = true;
    while (isPending) {
      isPending = false;
      await handle().catch(() => undefined);
    }
    isRunning = false;
  };
  process.on('SIGHUP', () => {
    isPending = true;
    void run();
  });
  return (reload) => {
    handle = reload;
    void run();
  };
}

/** Resolves at the first SIGTERM or SIGINT; a second one ends the process at once. */
export function untilStopped(): Promise<void> {
  return new Promise((resolve) => {
    let stopping = false;
    const stop = () => {
      if (stopping) process.exit(130);
      stopping = true;
      resolve();
    };
    process.on('SIGTERM', stop);
    process.on('SIGINT', stop);
  });
}
