import type { UpstreamClock } from '../clock.ts';
import type { SandboxOptions } from '../options.ts';

/**
 * Senders bring submissions to the chain. `begin` is called once per accepted submission with the
 * start time of its sending attempt, which may be in the future. With serial senders, the attempt
 * occupies its sender until `release`.
 */
export type Senders<T> = {
  accept(submission: T, atMs: number): void;
  release(submission: T, atMs: number): void;
};

type Begin<T> = (submission: T, beginMs: number) => void;

export function createSenders<T>(
  options: SandboxOptions,
  clock: UpstreamClock,
  begin: Begin<T>,
): Senders<T> {
  return options.senders === 0
    ? { accept: begin, release: () => {} }
    : serialSenders(options, clock, begin);
}

/** A submission in the queue of a sender, preceded by `skipped` messages for other senders. */
type Message<T> = { submission: T; skipped: number };

type Sender<T> = {
  isBusy: boolean;
  /** Until then, an idle sender skips messages for other senders or rests. */
  freeMs: number;
  /** Messages for other senders after the newest own message. */
  toSkip: number;
  queue: Message<T>[];
};

/**
 * All senders read one queue of messages in order. The addressed sender sends the submission, waits
 * until its row is written and rests; every other sender spends a short time on skipping the
 * message.
 */
function serialSenders<T>(
  options: SandboxOptions,
  clock: UpstreamClock,
  begin: Begin<T>,
): Senders<T> {
  const restMs = clock.seconds(options.senderRestS);
  const skipMs = clock.seconds(options.senderSkipS);
  const holders = new Map<T, Sender<T>>();
  const senders = Array.from(
    { length: options.senders },
    (): Sender<T> => ({ isBusy: false, freeMs: Number.NEGATIVE_INFINITY, toSkip: 0, queue: [] }),
  );
  let turn = -1;

  function addressee(): Sender<T> | undefined {
    turn = (turn + 1) % senders.length;
    return senders[turn];
  }

  function skip(sender: Sender<T>, atMs: number): void {
    if (sender.isBusy) sender.toSkip += 1;
    else sender.freeMs = Math.max(sender.freeMs, atMs) + skipMs;
  }

  function start(sender: Sender<T>, submission: T, beginMs: number): void {
    sender.isBusy = true;
    holders.set(submission, sender);
    begin(submission, beginMs);
  }

  return {
    accept(submission, atMs) {
      const chosen = addressee();
      for (const sender of senders) if (sender !== chosen) skip(sender, atMs);
      if (chosen === undefined) return;
      if (!chosen.isBusy) {
        start(chosen, submission, Math.max(chosen.freeMs, atMs));
        return;
      }
      chosen.queue.push({ submission, skipped: chosen.toSkip });
      chosen.toSkip = 0;
    },
    release(submission, atMs) {
      const sender = holders.get(submission);
      if (sender === undefined) return;
      holders.delete(submission);
      const message = sender.queue.shift();
      if (message) {
        start(sender, message.submission, atMs + restMs + message.skipped * skipMs);
        return;
      }
      sender.isBusy = false;
      sender.freeMs = atMs + restMs + sender.toSkip * skipMs;
      sender.toSkip = 0;
    },
  };
}
