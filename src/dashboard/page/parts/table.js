import { useState } from 'preact/hooks';
import { html } from './html.js';

/**
 * @template [Row=any]
 * @typedef {{ title: any, cell: (row: Row) => any, class?: string, width?: number, has?: (row: Row) => unknown, usual?: (row: Row) => unknown }} Column
 *   `class`: of the title and of every cell: "number"; "wraps": on a phone, long texts are not cut;
 *   "from-m", "from-l": only where there is that much space; `width`: in rem, default: a share of
 *   the rest; `has`: whether a row has a value; a column that is empty in every row is absent;
 *   `usual`: a value that does not stand out where most rows have it
 */

/**
 * A table with one line per row; on a phone, the cells of a row wrap. The cells of the first column
 * are the headers of their rows.
 * @typedef {{ caption: any, label?: string, columns: readonly Column[], rows: readonly any[], isBusy?: boolean, isShort?: boolean, hidesCaption?: boolean, keyOf?: (row: any, index: number) => string | number }} Props
 * @param {Props} props
 *   `label`: the name of its region, if it is not the caption; `isShort`: it scrolls vertically;
 *   `keyOf`: identifies a row, so that the focus stays in it when others appear; default: its `id`
 */
export function Table({
  caption,
  label = caption,
  columns: all,
  rows,
  isBusy,
  isShort,
  hidesCaption,
  keyOf = (row, index) => row.id ?? index,
}) {
  const columns = all
    .filter(({ has }) => !has || rows.some(has))
    .map(({ usual, ...column }) => ({ ...column, isUsual: usual && mostOf(rows, usual) }));
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
        ${rows.map((row, index) => html`<${Row} key=${keyOf(row, index)} columns=${columns} row=${row} />`)}
      </tbody>
    </table>
  </div>`;
}

/** Returns whether a row has the value that more than half of the rows have. */
function mostOf(rows, usual) {
  const groups = Object.values(Object.groupBy(rows, usual));
  const most = groups.find((group) => group && group.length > 1 && 2 * group.length > rows.length);
  return (row) => most?.includes(row);
}

function showWhole({ target }) {
  const cell = target instanceof Element && target.closest('th, td');
  if (!(cell instanceof HTMLElement)) return;
  const isCut = [cell, ...cell.querySelectorAll('*')].some(
    (one) => one.scrollWidth > one.clientWidth,
  );
  cell.title = isCut ? cell.innerText : '';
}

function Row({ columns: [first, ...others], row }) {
  return html`<tr>
    <th scope="row" class=${first?.class}>${first?.cell(row)}</th>
    ${others.map(({ cell, class: name = '', isUsual }, index) => html`<td key=${index} class=${isUsual?.(row) ? `${name} usual` : name}>${cell(row)}</td>`)}
  </tr>`;
}

export function PlotTable(props) {
  const [isOpen, setIsOpen] = useState(false);
  return html`<details onToggle=${(event) => setIsOpen(event.target.open)}>
    <summary>As a table<span class="unseen">: ${props.label}</span></summary>
    ${isOpen && html`<${Table} ...${props} isShort />`}
  </details>`;
}
