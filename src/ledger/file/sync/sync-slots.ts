import { fdatasync } from 'node:fs';

/** The number of syncs that run at once. Each occupies one of the 4 threads of libuv, which also resolve host names and read files. */
const SLOTS = 2;

/** Limits the syncs of all ledgers of a server, so that a slow disk does not stop polls and webhooks. Further ones wait in order. */
export class SyncSlots {
  #free = SLOTS;
  readonly #waiting: (() => void)[] = [];

  /** Syncs the data of a file. The descriptor must be open until `onEnd` is called. */
  fdatasync(fd: number, onEnd: (error: Error | null) => void): void {
    if (this.#free > 0) this.#run(fd, onEnd);
    else this.#waiting.push(() => this.#run(fd, onEnd));
  }

  #run(fd: number, onEnd: (error: Error | null) => void): void {
    this.#free -= 1;
    fdatasync(fd, (error) => {
      this.#free += 1;
      this.#waiting.shift()?.();
      onEnd(error);
    });
  }
}
