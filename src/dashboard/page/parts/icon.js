import { h } from 'preact';
import { ICONS } from './icons.js';

/** A decoration beside a text, or in a control with a name. @param {{ name: string }} props */
export function Icon({ name }) {
  const shapes = (ICONS[name] ?? []).map(([tag, attributes]) => h(tag, attributes));
  return h('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true' }, shapes);
}
