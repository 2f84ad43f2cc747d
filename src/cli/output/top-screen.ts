/** Switches to the alternate screen, hides the cursor and disables line wrapping. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l';
const LEAVE = '\u001b[?7h\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE_END = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';
const CTRL_C = '\u0003';

type Input = NodeJS.ReadableStream & { isTTY?: boolean; setRawMode?: (raw: boolean) => unknown };

/** Takes over the whole terminal until `close` or the end of the process. */
export function openScreen({ output, input }: { output: NodeJS.WritableStream; input: Input }) {
  let isOpen = true;
  const { promise: quit, resolve } = Promise.withResolvers<void>();
  const onData = (bytes: Buffer | string) => {
    if (/[qQ]/.test(String(bytes)) || String(bytes).includes(CTRL_C)) resolve();
  };
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    process.off('exit', close);
    output.write(LEAVE);
    if (!input.isTTY) return;
    input.off('data', onData).pause();
    input.setRawMode?.(false);
  };
  process.once('exit', close);
  output.write(ENTER);
  if (input.isTTY) {
    input.setRawMode?.(true);
    input.on('data', onData).resume();
  }
  return {
    /** Resolves when `q` or Ctrl-C is pressed. */
    quit,
    /** Restores the terminal. Idempotent. */
    close,
    draw(lines: readonly string[]): void {
      if (isOpen) output.write(`${HOME}${lines.map((line) => `${line}${CLEAR_LINE_END}`).join('\r\n')}${CLEAR_BELOW}`);
    },
  };
}
