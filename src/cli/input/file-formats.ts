import { isObject } from '../../domain/json.ts';
import { unescapeFormulas } from '../../domain/reports/csv.ts';

/** The fields of one submission in a file, before validation; or the reason why the text cannot be read. */
type Fields = { fields: Record<string, unknown> } | { problem: string };

export type FileFormat = {
  /** Whether the line has an odd number of quotes, so that a quoted cell continues across line ends. */
  togglesQuote: (line: string) => boolean;
  fieldsOf: (text: string) => Fields;
};

const DELIMITERS = [',', ';', '\t'];
const ID_COLUMN = 'submission_id';
/** Columns that only an export of dawatch has. Cells of an export are escaped for spreadsheets. */
const EXPORT_COLUMNS = ['status', 'tracked_at', 'deadline_at', 'changed_at'];
const NUMBER = /^\d+(\.\d+)?$/;

/** Returns the format of a file by its first line with content. `isHeader`: that line contains no submission. */
export function formatOf(first: string): { format: FileFormat; isHeader: boolean } | { problem: string } {
  if (first.trimStart().startsWith('{')) return { format: NDJSON, isHeader: false };
  if (first.trimStart().startsWith('['))
    return { problem: 'is a list in JSON; write one object per line instead (jq -c ".[]" converts it)' };
  for (const delimiter of DELIMITERS) {
    const columns = cellsOf(first, delimiter)?.map((name) => name.trim());
    if (columns?.includes(ID_COLUMN)) return csvFormat(columns, delimiter);
  }
  return { format: IDS, isHeader: false };
}

/** One id per line. */
const IDS: FileFormat = {
  togglesQuote: () => false,
  fieldsOf(text) {
    // Otherwise the lines of a CSV file without a header would count as ids.
    if (text.includes(','))
      return {
        problem: `has a comma; CSV needs a header with the column ${ID_COLUMN}, and an id with a comma needs JSON`,
      };
    if (/^\s*".+"\s*$/.test(text)) return { problem: 'has an id in quotes; write it without quotes (jq -r does)' };
    return { fields: { submission_id: text.trim() } };
  },
};

/** One JSON object per line. */
const NDJSON: FileFormat = {
  togglesQuote: () => false,
  fieldsOf(text) {
    const value = parsed(text);
    return isObject(value)
      ? { fields: value }
      : { problem: 'is not a JSON object; each line must be one (jq -c . converts other JSON)' };
  },
};

/** CSV (RFC 4180) with a header. An empty cell is an absent field. */
function csvFormat(
  columns: readonly string[],
  delimiter: string,
): { format: FileFormat; isHeader: true } | { problem: string } {
  const repeated = columns.find((name, index) => columns.indexOf(name) !== index);
  if (repeated !== undefined) return { problem: `has the column ${JSON.stringify(repeated)} twice` };
  const isEscaped = EXPORT_COLUMNS.every((name) => columns.includes(name));
  const fieldsOf = (text: string): Fields => {
    const cells = cellsOf(text, delimiter);
    if (!cells) return { problem: 'has a quote within a cell without quotes' };
    if (cells.length !== columns.length)
      return { problem: `has ${cells.length} cells, and the header has ${columns.length}` };
    const fields = columns.flatMap((name, index): [string, unknown][] => {
      const cell = isEscaped ? unescapeFormulas(cells[index] ?? '') : (cells[index] ?? '').trim();
      return cell === '' ? [] : [[name, cellValue(name, cell)]];
    });
    if (fields.some(([name, value]) => name === 'metadata' && value === undefined))
      return { problem: 'metadata: is not valid JSON' };
    return { fields: Object.fromEntries(fields) };
  };
  return { format: { togglesQuote: (line) => line.split('"').length % 2 === 0, fieldsOf }, isHeader: true };
}

/**
 * Returns the value of a cell; undefined for metadata that is not JSON. A cell that does not have the type of its column stays
 * text, which the validation refuses.
 */
function cellValue(column: string, cell: string): unknown {
  if (column === 'metadata') return parsed(cell);
  if (column === 'retrack' && (cell === 'true' || cell === 'false')) return cell === 'true';
  if (column.endsWith('_s') && NUMBER.test(cell)) return Number(cell);
  return cell;
}

/** Returns the cells of a line; undefined if it is not CSV. */
function cellsOf(text: string, delimiter: string): string[] | undefined {
  const cells: string[] = [];
  for (let at = 0; ; at += 1) {
    let end: number;
    if (text[at] === '"') {
      const close = closingQuote(text, at + 1);
      end = close + 1;
      if (close < 0 || (end < text.length && text[end] !== delimiter)) return undefined;
      cells.push(text.slice(at + 1, close).replaceAll('""', '"'));
    } else {
      const next = text.indexOf(delimiter, at);
      end = next < 0 ? text.length : next;
      const cell = text.slice(at, end);
      if (cell.includes('"')) return undefined;
      cells.push(cell);
    }
    if (end >= text.length) return cells;
    at = end;
  }
}

function closingQuote(text: string, from: number): number {
  for (let at = text.indexOf('"', from); at >= 0; at = text.indexOf('"', at + 2)) if (text[at + 1] !== '"') return at;
  return -1;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
