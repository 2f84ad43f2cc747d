import { styleText } from 'node:util';
import { escapeText } from '../../domain/text.ts';

export type Colour = 'green' | 'yellow' | 'red' | 'cyan' | 'gray' | 'bold';

/** Colours a text, or leaves it as it is. */
export type Paint = (colour: Colour | undefined, text: string) => string;

/** Colours on a terminal that has them; NO_COLOR and FORCE_COLOR are heeded. */
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
  failed: 'red',
  unknown: 'red',
  rejected: 'red',
  expired: 'red',
  dead: 'red',
  cancelled: 'gray',
  discarded: 'gray',
  revoked: 'gray',
};

/** A status or state for stdout; it may be of any server. */
export function coloured(state: string): string {
  return paintFor(process.stdout)(colourOf(state), escapeText(state));
}

/** Of a status or state, by the first word of the text that tells it. */
export function colourOf(state: string): Colour | undefined {
  return COLOURS[state.split(' ', 1)[0] ?? ''];
}
