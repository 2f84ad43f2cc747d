import { onTestFinished } from 'vitest';
import { sleep, trackUntilAcknowledged } from '../../support/processes/killable-server.ts';
import { openProducer } from '../../support/redis/producer.ts';
import type { Machine } from './machine.ts';

const BATCH = 10;
const PAUSE_MS = 200;

/**
 * Backends that continuously track new ids, over HTTP and through the queue, and repeat each
 * request at the current machine until it is acknowledged.
 */
export function startClients({
  machine,
  submit,
}: {
  machine: Machine;
  submit: (count: number) => string[];
}) {
  let current = machine;
  let producer = openProducer(machine.redis);
  let isMoved = new AbortController();
  let isOver = false;
  /** When each id was acknowledged, in epoch milliseconds. */
  const acknowledged = new Map<string, number>();
  const acknowledge = (ids: readonly string[]) => {
    for (const id of ids) if (!acknowledged.has(id)) acknowledged.set(id, Date.now());
  };
  const track = async (ids: readonly string[]): Promise<void> => {
    // A request to the lost machine fails at once, and goes to the next one.
    while (
      !(await current.client.track(ids).then(
        () => true,
        () => false,
      ))
    )
      await sleep(20);
    acknowledge(ids);
  };
  const enqueue = async (ids: string[]): Promise<void> => {
    while (!isOver) {
      const { signal } = isMoved;
      try {
        await producer.enqueue(ids, signal);
        return acknowledge(ids);
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  };
  const work = async (send: (ids: string[]) => Promise<void>) => {
    for (; !isOver; await sleep(PAUSE_MS)) await send(submit(BATCH));
  };
  const working = Promise.all([work(track), work(enqueue)]);
  onTestFinished(() => {
    isOver = true;
    isMoved.abort();
  });
  return {
    acknowledged,
    /** Resolves with a new id, once it is acknowledged. */
    async trackOne(): Promise<string> {
      const [id = ''] = submit(1);
      await track([id]);
      return id;
    },
    /** Sends everything to another machine from now on. */
    moveTo(machine: Machine): void {
      current = machine;
      producer = openProducer(machine.redis);
      isMoved.abort();
      isMoved = new AbortController();
    },
    /**
     * Tracks all ids again, also those that are tracked already, as backends do after a failover.
     */
    trackAgain: () => trackUntilAcknowledged(current.client, [...acknowledged.keys()]),
    /** Resolves when the requests in flight are acknowledged. */
    async stop(): Promise<void> {
      isOver = true;
      await working;
    },
  };
}
