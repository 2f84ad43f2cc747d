import { settlePromises } from '../../support/virtual-time/virtual-clock.ts';

/**
 * Real HTTP in virtual time: time stops until every exchange has ended or been parked by its
 * receiver, which sends nothing more until time advances.
 */
export function createExchanges() {
  const parked = new Map<string, boolean>();
  let busy = 0;
  let wake: (() => void) | undefined;
  const release = () => {
    busy -= 1;
    if (busy === 0) wake?.();
  };
  return {
    begin(key: string): void {
      busy += 1;
      parked.set(key, false);
    },
    /** The receiver does nothing more with this exchange. */
    park(key: string): void {
      if (parked.get(key) !== false) return;
      parked.set(key, true);
      release();
    },
    /** The exchange continues. */
    resume(key: string): void {
      if (parked.get(key) === true) busy += 1;
      parked.set(key, false);
    },
    end(key: string): void {
      if (parked.get(key) === false) release();
      parked.delete(key);
    },
    async settle(): Promise<void> {
      await settlePromises();
      while (busy > 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        await settlePromises();
      }
    },
  };
}
