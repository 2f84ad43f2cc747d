import { useState } from 'preact/hooks';
import { html } from './html.js';

/**
 * @template [Row=any]
 * @typedef {{ title: any, cell: (row: Row) => any, class?: string, width?: number, has?: (row: Row) => unknown }} Column
 *   `class`: of the title and of every cell: "number"; "wraps": on a phone, long texts are not cut;
 *   "from-m", "from-l": only where there is that much space; "at-state", "at-left", "at-middle",
 *   "at-end": the place on a phone, where columns without one are absent; `width`: in rem, default:
 *   a share of the rest; `has`: whether a row has a value; a column that is empty in every row is
 *   absent
 */

/**
 * A table with one line per row, and two lines on a phone. The cells of the first column are the
 * headers of their rows.
 * @typedef {{ caption: any, label?: string, columns: readonly Column[], rows: readonly any[], isBusy?: boolean, isShort?: boolean, hidesCaption?: boolean, keyOf?: (row: any, index: number) => string | number, details?: (row: any) => any, current?: string | number | undefined, onRow?: (row: any) => void }} Props
 * @param {Props} props `label`: the name of its region, if it is not the caption; `isShort`: it scrolls vertically; `keyOf`: identifies a row,
 *   so that the focus stays in it when others appear; default: its `id`; `details`: shown below a
 *   row on demand, by a button in its first cell; `current`: the key of a marked row; `onRow`:
 *   called for a click on a row, beside its controls
 */
export function Table({
  caption,
  label = caption,
  columns: all,
  rows,
  isBusy,
  isShort,
  hidesCaption,
  keyOf = idOf,
  details,
  current,
  onRow,
}) {
  const columns = all.filter(({ has }) => !has || rows.some(has));
  return html`<div class=${isShort ? 'wide short' : 'wide'} tabindex=${isShort ? '0' : undefined} role="region" aria-label=${label}>
    <table aria-busy=${isBusy} onMouseOver=${showWhole}>
      <caption class=${hidesCaption ? 'unseen' : ''}>${caption}</caption>
      <thead>
        <tr>
          ${columns.map(
            ({ title, class: name, width }, index) =>
              html`<th key=${index} scope="col" class=${name} style=${width && { width: `${width}rem` }}>${title}</th>`,
          )}
        </tr>
      </thead>
      <tbody>
        ${rows.map((row, index) => {
          const key = keyOf(row, index);
          return html`<${Row} key=${key} columns=${columns} row=${row} details=${details} isCurrent=${current === key} onRow=${onRow} />`;
        })}
      </tbody>
    </table>
  </div>`;
}

/** @param {any} row @param {number} index */
function idOf(row, index) {
  return row.id ?? index;
}

/** The whole text of a cell that is cut. @param {MouseEvent} event */
function showWhole({ target }) {
  const cell = target instanceof Element && target.closest('th, td');
  if (!(cell instanceof HTMLElement)) return;
  const isCut = [cell, ...cell.children].some((one) => one.scrollWidth > one.clientWidth);
  cell.title = isCut ? cell.innerText : '';
}

/**
 * The arrow keys move the focus from row to row, and from the page to the row after the marked one,
 * or to the first row of its list.
 * @param {KeyboardEvent} event
 */
export function moveByRow(event) {
  const { target, key } = event;
  if (!/^Arrow(?:Down|Up)$/.test(key) || event.ctrlKey || event.metaKey || event.altKey) return;
  if (!(target instanceof Element)) return;
  if (target.matches('select, textarea, input:not([type="checkbox"])')) return;
  const step = key === 'ArrowDown' ? 'nextElementSibling' : 'previousElementSibling';
  const isPage = target.matches('body, main, h1');
  const row = target.closest('tbody > tr') ?? (isPage && document.querySelector('tr.current'));
  const first = isPage && document.querySelector('.wide:not(section *) tbody > tr');
  let next = row ? row[step] : key === 'ArrowDown' && first;
  while (next && !next.querySelector('th')) next = next[step];
  const control =
    next && (next.querySelector('th :is(a, button)') ?? next.querySelector('a, button'));
  if (!(control instanceof HTMLElement)) return;
  event.preventDefault();
  control.focus();
}

/**
 * @param {{ columns: readonly Column[], row: any, details?: ((row: any) => any) | undefined, isCurrent: boolean, onRow?: ((row: any) => void) | undefined }} props
 */
function Row({ columns, row, details, isCurrent, onRow }) {
  const [isOpen, setIsOpen] = useState(false);
  const [first, ...others] = columns;
  const click = (/** @type {MouseEvent} */ { target }) => {
    const isControl = target instanceof Element && target.closest('a, button, input, label, time');
    if (!isControl && !getSelection()?.toString()) onRow?.(row);
  };
  return html`<tr class=${isCurrent ? 'current' : ''} onClick=${onRow && click}>
      <th scope="row" class=${first?.class}>
        ${
          details
            ? html`<button type="button" class="plain" aria-expanded=${isOpen} onClick=${() => setIsOpen(!isOpen)}>
                <span aria-hidden="true">${isOpen ? '▾' : '▸'}</span> ${first?.cell(row)}
              </button>`
            : first?.cell(row)
        }
      </th>
      ${others.map(({ cell, class: name }, index) => html`<td key=${index} class=${name}>${cell(row)}</td>`)}
    </tr>
    ${details && isOpen && html`<tr><td colspan=${columns.length}>${details(row)}</td></tr>`}`;
}

/** The values of a plot as a table, on demand. @param {Props & { label: string }} props */
export function PlotTable(props) {
  const [isOpen, setIsOpen] = useState(false);
  return html`<details onToggle=${(/** @type {any} */ event) => setIsOpen(event.target.open)}>
    <summary>As a table<span class="unseen">: ${props.label}</span></summary>
    ${isOpen && html`<${Table} ...${props} isShort />`}
  </details>`;
}
