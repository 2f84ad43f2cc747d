/**
 * Who brings submissions to the chain. `begin` is called when a submission's turn has come: at once when sending in
 * parallel, and with serial senders when one of them is free. Whoever began must `release` when the attempt is over.
 */
type Senders<T> = {
  accept(submission: T, atMs: number): void;
  release(atMs: number): void;
};

type Begin<T> = (submission: T, atMs: number) => void;

export function createSenders<T>({ count, begin }: { count: number; begin: Begin<T> }): Senders<T> {
  return count === 0 ? { accept: begin, release: () => {} } : serialSenders({ count, begin });
}

function serialSenders<T>({ count, begin }: { count: number; begin: Begin<T> }): Senders<T> {
  let free = count;
  let waiting: T[] = [];
  let head = 0;

  function takeNext(): T | undefined {
    const next = waiting[head];
    if (next === undefined) return undefined;
    head += 1;
    // Shifting each time would move the whole queue; cutting it now and then keeps taking cheap.
    if (head > 1024 && head * 2 > waiting.length) {
      waiting = waiting.slice(head);
      head = 0;
    }
    return next;
  }

  function startWhileFree(atMs: number): void {
    while (free > 0) {
      const next = takeNext();
      if (next === undefined) return;
      free -= 1;
      begin(next, atMs);
    }
  }

  return {
    accept(submission, atMs) {
      waiting.push(submission);
      startWhileFree(atMs);
    },
    release(atMs) {
      free += 1;
      startWhileFree(atMs);
    },
  };
}
