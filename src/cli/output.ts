import { stripVTControlCharacters, styleText } from 'node:util';
import { escapeJson, escapeText } from '../lib/text.ts';

/** Returns JSON for stdout with control characters escaped, on one line unless indented. */
export function toJson(value: unknown, indent?: number): string {
  return escapeJson(JSON.stringify(value, null, indent));
}

type Colour = 'green' | 'yellow' | 'red' | 'cyan' | 'gray' | 'bold';

export type Paint = (colour: Colour | undefined, text: string) => string;

/** Colours text if the stream supports it, respecting NO_COLOR and FORCE_COLOR. */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  return (colour, text) => (colour ? styleText(colour, text, { stream }) : text);
}

const COLOURS: Record<string, Colour | undefined> = {
  finalized: 'green',
  delivered: 'green',
  enabled: 'green',
  pending: 'cyan',
  waiting: 'cyan',
  failing: 'yellow',
  disabled: 'yellow',
  muted: 'gray',
  resolved: 'gray',
  firing: 'red',
  failed: 'red',
  unknown: 'red',
  rejected: 'red',
  expired: 'red',
  dead: 'red',
  cancelled: 'gray',
  discarded: 'gray',
  revoked: 'gray',
};

export function coloured(state: string): string {
  return paintFor(process.stdout)(colourOf(state), escapeText(state));
}

/** Returns the colour of a status or state, which is the first word of the text. */
function colourOf(state: string): Colour | undefined {
  return COLOURS[state.split(' ', 1)[0] ?? ''];
}

/** Aligns columns. Escape sequences do not count; lines have no trailing spaces. */
export function table(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(...rows.map((row) => widthOf(row[column] ?? ''))),
  );
  const line = (row: readonly string[]) =>
    row
      .map((cell, column) => cell + ' '.repeat((widths[column] ?? 0) - widthOf(cell)))
      .join('  ')
      .trimEnd();
  return rows.map((row) => `${line(row)}\n`).join('');
}

export function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

function widthOf(cell: string): number {
  return stripVTControlCharacters(cell).length;
}

const CLEAR_LINE = '\r\u001b[K';

/** Prints lines and, on a terminal, how much is done in the line below them. */
export type Progress = {
  line(text: string): void;
  advance(done: number, note?: string): void;
  stop(): void;
};

export function createProgress(total: number, label: string, stream: NodeJS.WriteStream): Progress {
  let state = '';
  const draw = () => {
    if (stream.isTTY) stream.write(`${CLEAR_LINE}${state.slice(0, stream.columns - 1)}`);
  };
  return {
    line(text) {
      stream.write(`${stream.isTTY ? CLEAR_LINE : ''}${text}\n`);
      draw();
    },
    advance(done, note = '') {
      state = `${label} ${done}/${total} ${note}`;
      draw();
    },
    stop() {
      if (stream.isTTY && state !== '') stream.write('\n');
    },
  };
}
