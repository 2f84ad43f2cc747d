/** Counts the entries of the window (now - windowMs, now] exactly. */
export type SlidingWindow = {
  add(nowMs: number): void;
  count(nowMs: number): number;
  /** Returns the milliseconds until the oldest entry leaves the window, or 0 if the window is empty. */
  untilOldestLeavesMs(nowMs: number): number;
};

export function createSlidingWindow(windowMs: number): SlidingWindow {
  let times: number[] = [];
  let head = 0;

  function drop(nowMs: number): void {
    for (let oldest = times[head]; oldest !== undefined && oldest <= nowMs - windowMs; oldest = times[head]) head += 1;
    if (head > 1024 && head * 2 > times.length) {
      times = times.slice(head);
      head = 0;
    }
  }

  return {
    add(nowMs) {
      drop(nowMs);
      times.push(nowMs);
    },
    count(nowMs) {
      drop(nowMs);
      return times.length - head;
    },
    untilOldestLeavesMs(nowMs) {
      drop(nowMs);
      const oldest = times[head];
      return oldest === undefined ? 0 : oldest + windowMs - nowMs;
    },
  };
}
