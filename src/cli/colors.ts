import { styleText } from 'node:util';
import { escapeText } from '../lib/text.ts';

export type Colour = 'green' | 'yellow' | 'red' | 'cyan' | 'gray' | 'bold';

export type Paint = (colour: Colour | undefined, text: string) => string;

/**
 * Returns a painter that colours text if the stream supports it, respecting NO_COLOR and
 * FORCE_COLOR.
 */
export function paintFor(stream: NodeJS.WriteStream): Paint {
  return (colour, text) => (colour ? styleText(colour, text, { stream }) : text);
}

export const plain: Paint = (_colour, text) => text;

const COLOURS: Record<string, Colour | undefined> = {
  finalized: 'green',
  delivered: 'green',
  enabled: 'green',
  pending: 'cyan',
  waiting: 'cyan',
  failing: 'yellow',
  disabled: 'yellow',
  acknowledged: 'yellow',
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

/** Returns a status or state, escaped and coloured for stdout. */
export function coloured(state: string): string {
  return paintFor(process.stdout)(colourOf(state), escapeText(state));
}

/** Returns the colour of a status or state, which is the first word of the text. */
export function colourOf(state: string): Colour | undefined {
  return COLOURS[state.split(' ', 1)[0] ?? ''];
}
