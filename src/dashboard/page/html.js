import htm from 'htm';
import { h } from 'preact';

/** Elements from a template. What is put in stays text, whatever it holds. */
export const html = htm.bind(h);
