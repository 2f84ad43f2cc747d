import htm from 'htm';
import { h } from 'preact';

/** Elements from a template. Interpolated values are always text, never markup. */
export const html = htm.bind(h);
