import { useState } from 'preact/hooks';
import { html } from './html.js';

/**
 * @template [Row=any]
 * @typedef {{ title: any, cell: (row: Row) => any, class?: string }} Column
 *   `class`: of the title and of every cell; "secondary": shown only where there is much space
 */

/**
 * A table that becomes a list of named values in a narrow place. The cells of the first column are
 * the headers of their rows.
 * @typedef {{ caption: any, label?: string, columns: readonly Column[], rows: readonly any[], isBusy?: boolean, isShort?: boolean, hidesCaption?: boolean, keyOf?: (row: any, index: number) => string | number, details?: (row: any) => any }} Props
 * @param {Props} props `label`: the name of its region, if it is not the caption; `isShort`: it scrolls vertically, too; `keyOf`: identifies a row,
 *   so that the focus stays in it when others appear; default: its `id`; `details`: shown below a
 *   row on demand, by a button in its first cell
 */
export function Table({
  caption,
  label = caption,
  columns,
  rows,
  isBusy,
  isShort,
  hidesCaption,
  keyOf = idOf,
  details,
}) {
  return html`<div class=${isShort ? 'wide short' : 'wide'} tabindex="0" role="region" aria-label=${label}>
    <table aria-busy=${isBusy}>
      <caption class=${hidesCaption ? 'unseen' : ''}>${caption}</caption>
      <thead>
        <tr>${columns.map(({ title, class: name }, index) => html`<th key=${index} scope="col" class=${name}>${title}</th>`)}</tr>
      </thead>
      <tbody>
        ${rows.map((row, index) => html`<${Row} key=${keyOf(row, index)} columns=${columns} row=${row} details=${details} />`)}
      </tbody>
    </table>
  </div>`;
}

/** @param {any} row @param {number} index */
function idOf(row, index) {
  return row.id ?? index;
}

/** @param {{ columns: readonly Column[], row: any, details?: ((row: any) => any) | undefined }} props */
function Row({ columns, row, details }) {
  const [isOpen, setIsOpen] = useState(false);
  const [first, ...others] = columns;
  return html`<tr>
      <th scope="row" class=${first?.class}>
        ${
          details
            ? html`<button type="button" class="plain" aria-expanded=${isOpen} onClick=${() => setIsOpen(!isOpen)}>
                <span aria-hidden="true">${isOpen ? '▾' : '▸'}</span> ${first?.cell(row)}
              </button>`
            : first?.cell(row)
        }
      </th>
      ${others.map(
        ({ title, cell, class: name }, index) =>
          html`<td key=${index} class=${name} data-title=${typeof title === 'string' ? title : undefined}>${cell(row)}</td>`,
      )}
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
